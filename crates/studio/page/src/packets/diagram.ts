// Packets as a sequence diagram: a lane for each node, time downward, a line for each hop.
import { drawn } from "../element.ts";
import type { Hop, Packet, PacketTrace } from "../protocol.ts";
import { labels, TIME } from "../axis.ts";
import { ticks } from "../ticks.ts";
import { fate, story, summary } from "./story.ts";

const LEFT = 86;
const TOP = 14;
const HEAD = 24;
const RIGHT = 50;
/** The least distance of two lanes. */
const LANE = 110;
const BOTTOM = 14;
/** The height for each packet, and its bounds. */
const ROW = 13;
const LEAST = 260;
const MOST = 6000;

/** The names of the lanes, to stay above the diagram while it scrolls. */
export function laneNames(trace: PacketTrace, room: number): SVGSVGElement {
  const { at, width } = laneAt(trace, room);
  return drawn("svg", { class: "sequence names", width, height: HEAD, viewBox: `0 0 ${width} ${HEAD}`, "aria-hidden": "true" },
    ...trace.lanes.map(({ name }, lane) => drawn("text", { class: "name", x: at(lane), y: 16, "text-anchor": "middle" }, name)));
}

// The lanes fill a width, as far as there is room between them.
function laneAt({ lanes }: PacketTrace, width: number): { at(lane: number): number; width: number } {
  const gaps = Math.max(lanes.length - 1, 1);
  const apart = Math.max((width - LEFT - RIGHT) / gaps, LANE);
  return { at: (lane) => LEFT + apart * lane, width: LEFT + apart * gaps + RIGHT };
}

/** `choose` is told the packet that is clicked. */
export function diagram(trace: PacketTrace, room: number, choose: (index: number) => void): SVGSVGElement {
  const times = trace.packets.flatMap(({ hops }) => hops.flatMap(({ sent, arrived }) => [sent, arrived]));
  const from = Math.min(...times);
  const until = Math.max(...times, from + 1e-9);
  const height = Math.min(Math.max(trace.packets.length * ROW, LEAST), MOST);
  const { at: x, width } = laneAt(trace, room);
  const y = (time: number): number => TOP + ((time - from) / (until - from)) * height;
  const svg = drawn("svg", {
    class: "sequence", width, height: TOP + height + BOTTOM, viewBox: `0 0 ${width} ${TOP + height + BOTTOM}`,
    role: "img", "aria-label": summary(trace),
  });
  const marks = ticks(from, until, Math.max(2, Math.round(height / 90)));
  labels(TIME, marks).forEach((label, index) => svg.append(
    drawn("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(marks[index]!), y2: y(marks[index]!) }),
    drawn("text", { x: LEFT - 8, y: y(marks[index]!) + 4, "text-anchor": "end" }, label)));
  trace.lanes.forEach(({ kind }, lane) => svg.append(
    drawn("line", { class: `lane ${kind}`, x1: x(lane), x2: x(lane), y1: TOP, y2: TOP + height })));
  trace.packets.forEach((packet, index) => svg.append(drawWay(packet, index, x, y, choose)));
  return svg;
}

function drawWay(packet: Packet, index: number, x: (lane: number) => number, y: (time: number) => number, choose: (index: number) => void): SVGGElement {
  const group = drawn("g", { class: `way ${fate(packet)}`, "data-packet": index, click: () => choose(index) },
    drawn("title", {}, `${packet.flow} ${packet.kind} ${packet.text} ${story(packet)}`.trim()));
  const line = (hop: Hop): SVGLineElement =>
    drawn("line", { x1: x(hop.from), y1: y(hop.sent), x2: x(hop.to), y2: y(hop.arrived) });
  packet.hops.forEach((hop, place) => {
    const before = packet.hops[place - 1];
    // The time in a queue is a line down its lane.
    if (before) group.append(drawn("line", { class: "wait", x1: x(hop.from), y1: y(before.arrived), x2: x(hop.from), y2: y(hop.sent) }));
    group.append(line(hop), arrow(x(hop.from), y(hop.sent), x(hop.to), y(hop.arrived)));
    if (hop.marked) group.append(drawn("circle", { class: "mark", cx: x(hop.from), cy: y(hop.sent), r: 3.5 }));
  });
  const last = packet.hops.at(-1);
  if (packet.lost !== null && last) {
    const [cx, cy] = [x(last.to), y(last.arrived)];
    group.append(drawn("path", { class: "cross", d: `M${cx - 5} ${cy - 5}l10 10m0 -10l-10 10` }));
  }
  return group;
}

function arrow(x1: number, y1: number, x2: number, y2: number): SVGPathElement {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const point = (turn: number): string => `${(x2 - 7 * Math.cos(angle + turn)).toFixed(1)} ${(y2 - 7 * Math.sin(angle + turn)).toFixed(1)}`;
  return drawn("path", { class: "head", d: `M${point(0.4)}L${x2.toFixed(1)} ${y2.toFixed(1)}L${point(-0.4)}` });
}
