// What happened to packets, in words and as a class of the style sheet.
import type { Packet, PacketTrace } from "../protocol.ts";
import { readable } from "../quantity.ts";

/** Packets of up to so many bytes carry no data. */
const BARE = 100;

/** What happened to a packet, as a class of the style sheet; the worst counts. */
export function fate(packet: Packet): string {
  if (packet.lost !== null) return "packet-lost";
  if (packet.hops.some(({ marked }) => marked)) return "packet-marked";
  if (packet.retransmitted) return "packet-again";
  return packet.length > BARE ? "packet-data" : "packet-ack";
}

/** Where and how, in words; empty if nothing happened. */
export function story(packet: Packet): string {
  const marked = packet.hops.find((hop) => hop.marked);
  return [
    packet.retransmitted ? "sent again" : "",
    marked ? `marked at ${marked.port}` : "",
    packet.lost !== null ? `lost at ${packet.lost}` : "",
  ].filter((words) => words !== "").join(", ");
}

/** What the packets are, in a sentence. */
export function summary({ packets, from, until, is_cut: isCut }: PacketTrace): string {
  const count = (is: (packet: Packet) => boolean): number => packets.filter(is).length;
  const span = `from ${readable(from, "seconds", 6)} to ${readable(until, "seconds", 6)}`;
  if (packets.length === 0) return `No packet was seen ${span}.`;
  return `${isCut ? `The last ${packets.length}` : packets.length} packets ${span}: ` +
    `${count(({ hops }) => hops.some(({ marked }) => marked))} marked, ${count(({ lost }) => lost !== null)} lost, ` +
    `${count(({ retransmitted }) => retransmitted)} sent again.`;
}
