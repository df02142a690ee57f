// Draws the network: links coloured by load, measured ports with their queue as a bar.
import { drawn, element, setText } from "../element.ts";
import type { Model, Run } from "../model.ts";
import type { Link } from "../protocol.ts";
import { plain, readable } from "../quantity.ts";
import type { Selection } from "../selection.ts";
import { firstAtLeast } from "../series.ts";
import { holdingAt, thresholdsOf } from "../thresholds.ts";
import { BAR, layout, type Edge, type Layout, type Place, type Point, type Slot } from "./layout.ts";

interface PortMark {
  port: number;
  link: Link;
  line: SVGElement;
  group: SVGGElement;
  fill: SVGRectElement;
  levels: SVGGElement;
  title: SVGTitleElement;
  note: SVGTextElement | null;
}

export class Drawing {
  private marks: PortMark[] = [];
  private current: Layout | null = null;
  private width = 0;
  private largest: number[] = [];

  constructor(private readonly host: HTMLElement, private readonly model: Model, private readonly selection: Selection, private readonly show?: (port: string) => void) {
    new ResizeObserver(() => this.build()).observe(host);
    model.onChange(() => this.refresh());
    selection.onChange(() => this.refresh());
  }

  private build(): void {
    const width = Math.max(this.host.clientWidth, 320);
    if (width === this.width) return;
    this.width = width;
    const { nodes, links } = this.model.scenario;
    this.current = layout(nodes, links, width);
    this.marks = [];
    const svg = drawn("svg", {
      class: "topology", width: this.current.width, height: this.current.height + 8,
      viewBox: `0 0 ${this.current.width} ${this.current.height + 8}`,
      role: "group", "aria-label": "The network. Ports with a queue are buttons that choose them for the plots.",
    });
    const lines = drawn("g");
    const bars = drawn("g");
    for (const edge of this.current.edges) this.drawEdge(edge, lines, bars);
    svg.append(lines, ...this.current.places.map((place) => this.drawPlace(place)), bars);
    this.host.replaceChildren(svg);
    this.refresh();
  }

  private drawPlace(place: Place): SVGElement {
    const { name, width, height } = place;
    const count = place.members.length;
    const most = Math.floor((width - 12) / 6.9) - (count > 1 ? 4 : 0);
    const short = name.length > most ? `${name.slice(0, Math.max(most - 1, 1))}…` : name;
    const box = { x: -width / 2, y: -height / 2, width, height, rx: place.kind === "switch" ? 3 : height / 2 };
    return drawn("g", { class: `place ${place.kind}`, transform: `translate(${place.x} ${place.y})` },
      drawn("title", {}, count > 1 ? `${count} hosts: ${place.members[0]} … ${place.members[count - 1]}` : name),
      count > 1 ? drawn("rect", { ...box, class: "behind", x: box.x + 3, y: box.y - 3 }) : "",
      drawn("rect", box),
      drawn("text", { y: 4, "text-anchor": "middle" }, count > 1 ? `${short} ×${count}` : short));
  }

  private drawEdge(edge: Edge, lines: SVGGElement, bars: SVGGElement): void {
    const measured = edge.links.filter((link) => link.measured !== null);
    const end = tip(edge.end, this.isBar(edge));
    if (measured.length === 0) {
      lines.append(drawn("line", { ...beside(tip(edge.slots[0]!, false), end), class: "link" }));
      return;
    }
    edge.slots.forEach((slot, index) => {
      const link = measured[index]!;
      const ends = beside(tip(slot, true), end);
      const line = drawn("line", { ...ends, class: "link measured" });
      lines.append(line);
      const note = this.current!.shape === "columns" && edge.slots.length === 1 ? linkNote(ends) : null;
      if (note) bars.append(note);
      bars.append(this.drawPort(link, line, note, slot));
    });
  }

  // Whether the other end of a direction has a bar of its own.
  private isBar(edge: Edge): boolean {
    return this.current!.edges.some(({ from, to, links }) =>
      from === edge.to && to === edge.from && links.some((link) => link.measured !== null));
  }

  private drawPort(link: Link, line: SVGElement, note: SVGTextElement | null, slot: Slot): SVGElement {
    const port = link.measured!;
    const { length, breadth } = BAR;
    const title = drawn("title");
    const fill = drawn("rect", { class: "queue", y: -breadth / 2, width: 0, height: breadth });
    const levels = drawn("g", { class: "thresholds" });
    const choose = (): void => this.selection.toggle(port);
    const angle = (Math.atan2(slot.out.y, slot.out.x) * 180) / Math.PI;
    const group = drawn("g", {
      class: "port", transform: `translate(${slot.x} ${slot.y}) rotate(${angle})`, role: "button",
      // With many ports the list beside is the keyboard's way.
      tabindex: this.model.scenario.ports.length <= 16 ? 0 : -1,
      click: choose,
      dblclick: () => this.show?.(link.port),
      keydown: (event: KeyboardEvent) => {
        if (event.key === "p") this.show?.(link.port);
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      },
    },
      title,
      drawn("rect", { class: "track", y: -breadth / 2, width: length, height: breadth }),
      fill, levels,
      drawn("rect", { class: "target", x: -1, y: -breadth / 2 - 2, width: length + 3, height: breadth + 4, rx: 2 }));
    line.addEventListener("click", choose);
    this.marks.push({ port, link, line, group, fill, levels, title, note });
    return group;
  }

  private refresh(): void {
    const run = this.model.run;
    if (!run) return;
    for (const mark of this.marks) this.refreshPort(mark, run);
  }

  private refreshPort(mark: PortMark, run: Run): void {
    const { scenario } = this.model;
    const columns = run.series.ports[mark.port]!;
    const last = run.series.portTime.length - 1;
    const queue = last >= 0 ? columns.queue.at(last) : 0;
    const load = loadOf(run, mark.port, mark.link.rate);
    const thresholds = holdingAt(thresholdsOf(this.model, run.state, mark.port), run.series.last).map(({ bytes }) => bytes);
    const largest = (this.largest[mark.port] = Math.max(this.largest[mark.port] ?? 0, queue));
    const near = thresholds.filter((value) => value < 4 * largest || largest === 0);
    const top = Math.max(largest, ...near, 1500) * 1.15;
    mark.fill.setAttribute("width", String(Math.min(queue / top, 1) * BAR.length));
    mark.levels.replaceChildren(...near.map((value) => {
      const x = (value / top) * BAR.length;
      return drawn("line", { x1: x, x2: x, y1: -BAR.breadth / 2 - 2, y2: BAR.breadth / 2 + 2 });
    }));
    mark.line.setAttribute("style", `stroke: ${loadColour(load)}`);
    const name = scenario.ports[mark.port]!.name;
    mark.group.setAttribute("aria-pressed", String(this.selection.has(mark.port)));
    mark.group.setAttribute("aria-label", `Port ${name}`);
    if (mark.note) setText(mark.note, `${readable(mark.link.rate, "bits/s", 3)} · ${Math.round(load * 100)} %`);
    setText(mark.title, `${name}: load ${plain(load * 100, 3)} %, queue ${readable(queue, "bytes", 3)}`);
  }
}

type Ends = Record<"x1" | "y1" | "x2" | "y2", number>;

// Where a line meets a slot: at the box, or at the outer end of its bar.
function tip(slot: Slot, isBar: boolean): Point {
  const length = isBar ? BAR.length : 0;
  return { x: slot.x + slot.out.x * length, y: slot.y + slot.out.y * length };
}

// Each direction of a link keeps to its right.
function beside(from: Point, to: Point): Ends {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [x, y] = [(-(to.y - from.y) / length) * 2, ((to.x - from.x) / length) * 2];
  return { x1: from.x + x, y1: from.y + y, x2: to.x + x, y2: to.y + y };
}

// Words above the middle of a link.
function linkNote({ x1, y1, x2, y2 }: Ends): SVGTextElement {
  return drawn("text", { class: "note", x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 9, "text-anchor": "middle" });
}

/** The share of its rate that a port sent over the last samples (the last fiftieth of the run, or eight samples). */
function loadOf(run: Run, port: number, rate: number): number {
  const time = run.series.portTime;
  const last = time.length - 1;
  if (last < 1) return 0;
  const since = Math.max(0, Math.min(last - 8, firstAtLeast(time.view(), time.at(last) * 0.98)));
  const { sent } = run.series.ports[port]!;
  const span = time.at(last) - time.at(since);
  return span > 0 ? ((sent.at(last) - sent.at(since)) * 8) / span / rate : 0;
}

/** From the rule's grey over blue to the level's red. */
function loadColour(load: number): string {
  const share = Math.min(Math.max(load, 0), 1);
  return share < 0.6
    ? `color-mix(in oklab, var(--s0) ${Math.round((share / 0.6) * 100)}%, var(--rule))`
    : `color-mix(in oklab, var(--level) ${Math.round(((share - 0.6) / 0.4) * 100)}%, var(--s0))`;
}

/** Says what the colours and the bars mean, and how to come to the packets. */
export function key(withPackets: boolean): HTMLElement {
  return element("p", { class: "aside key" },
    "Load ", element("span", { class: "scale", "aria-hidden": "true" }), " 0 to 100 % of the link's rate. Bar: queue, lines: thresholds. A click on a port chooses it for the plots" + (withPackets ? ", a double click (key p) shows its packets." : "."));
}
