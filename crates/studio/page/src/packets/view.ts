// The packets of a port or a flow up to the present time: a sequence diagram and a decoded list beside each other.
import * as client from "../client.ts";
import { byId, element, setText } from "../element.ts";
import { reason } from "../message.ts";
import type { Model } from "../model.ts";
import type { Packet, PacketTrace } from "../protocol.ts";
import { readable } from "../quantity.ts";
import { diagram, laneNames } from "./diagram.ts";
import { fate, story, summary } from "./story.ts";

type Kind = "port" | "flow";

export class Packets {
  private readonly box = byId<HTMLDetailsElement>("packets");
  private readonly kind = byId<HTMLSelectElement>("packet-kind");
  private readonly name = byId<HTMLInputElement>("packet-name");
  private readonly count = byId<HTMLSelectElement>("packet-count");
  private readonly note = byId("packet-note");
  private wanted = "";
  private later = 0;

  constructor(private readonly model: Model) {
    for (const control of [this.kind, this.name, this.count]) control.addEventListener("change", () => this.ask());
    this.kind.addEventListener("change", () => {
      this.name.value = "";
      this.suggest();
    });
    this.box.addEventListener("toggle", () => this.ask());
    model.onChange(() => { if (this.box.open) this.ask(); });
    this.suggest();
  }

  /** Opens the packets of a flow or a port. */
  show(kind: Kind, name: string): void {
    this.kind.value = kind;
    this.name.value = name;
    this.suggest();
    this.box.open = true;
    this.box.scrollIntoView({ block: "start" });
    byId("packet-diagram").focus({ preventScroll: true });
    this.ask();
  }

  private suggest(): void {
    const names = this.kind.value === "port" ? this.model.scenario.links.map(({ port }) => port) : this.model.watched;
    if (this.name.value === "") this.name.value = (this.kind.value === "port" ? this.model.scenario.ports[0]?.name : names[0]) ?? "";
    byId("packet-names").replaceChildren(...names.map((value) => element("option", { value })));
  }

  // A run that goes on has other packets at each moment: they are asked for when it stands still.
  private ask(): void {
    const run = this.model.run?.state;
    if (!run || !this.box.open) return;
    if (run.status === "playing" || run.status === "replaying") {
      if (this.wanted === "") setText(this.note, "Pause the run to see its packets.");
      return;
    }
    const [kind, name, count] = [this.kind.value as Kind, this.name.value.trim(), Number(this.count.value)];
    const wanted = JSON.stringify([run.run, run.now, run.log, kind, name, count]);
    if (wanted === this.wanted || name === "") return;
    this.wanted = wanted;
    clearTimeout(this.later);
    // A slider that is moved on asks again.
    this.later = window.setTimeout(() => void this.load(wanted, () => client.packets(run.run, kind, name, run.now, count)), 200);
  }

  private async load(wanted: string, get: () => Promise<PacketTrace>): Promise<void> {
    setText(this.note, "The run is simulated again for its packets …");
    try {
      const trace = await get();
      if (wanted === this.wanted) this.draw(trace);
    } catch (error) {
      if (wanted !== this.wanted) return;
      setText(this.note, reason(error));
      byId("packet-diagram").replaceChildren();
      byId("packet-table").replaceChildren();
    }
  }

  private draw(trace: PacketTrace): void {
    setText(this.note, summary(trace));
    const host = byId("packet-diagram");
    // A bar to scroll by takes some of it.
    const room = host.clientWidth - 18;
    const rows = trace.packets.map((packet, index) => this.row(trace, packet, index));
    byId("packet-table").replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, ...["Sent", "From", "To", "Flow", "Kind", "Numbers", "Bytes", "ECN", "What happened"].map((title, index) =>
        element("th", { scope: "col", class: index === 6 ? undefined : "name" }, title)))),
      element("tbody", {}, ...rows)));
    host.replaceChildren(...(trace.packets.length === 0 ? [] : [laneNames(trace, room), diagram(trace, room, (index) => this.choose(index, rows))]));
    host.scrollTop = host.scrollHeight;
  }

  private row(trace: PacketTrace, packet: Packet, index: number): HTMLTableRowElement {
    const [first, last] = [packet.hops[0], packet.hops.at(-1)];
    const cells = [
      readable(first?.sent ?? NaN, "seconds", 8), trace.lanes[first?.from ?? 0]?.name ?? "", trace.lanes[last?.to ?? 0]?.name ?? "",
      packet.flow, packet.kind, packet.text, packet.length.toLocaleString("en"), last?.ecn ?? "", story(packet),
    ];
    return element("tr", { class: fate(packet), "data-packet": index, click: () => this.choose(index) },
      ...cells.map((cell, place) => element("td", { class: place === 6 ? undefined : "name" }, cell)));
  }

  /** Brings out a packet in both views. */
  private choose(index: number, rows?: HTMLTableRowElement[]): void {
    for (const node of document.querySelectorAll("#packets [data-packet]")) {
      node.classList.toggle("chosen", node.getAttribute("data-packet") === String(index));
    }
    if (rows) centre(byId("packet-table"), rows[index]);
    else centre(byId("packet-diagram"), document.querySelector(`#packet-diagram [data-packet="${index}"]`));
  }
}

/** Scrolls only this box, and only downward or upward. */
function centre(box: HTMLElement, node: Element | null | undefined): void {
  if (!node) return;
  const [outer, inner] = [box.getBoundingClientRect(), node.getBoundingClientRect()];
  box.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
}
