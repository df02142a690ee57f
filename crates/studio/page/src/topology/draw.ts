// Draws the network: links coloured by load, measured ports with their queue as a bar.
import { drawn, element, setText } from "../element.ts";
import type { Model, Run } from "../model.ts";
import type { Link } from "../protocol.ts";
import { plain, readable } from "../quantity.ts";
import type { Selection } from "../selection.ts";
import { firstAtLeast } from "../series.ts";
import { holdingAt, thresholdsOf } from "../thresholds.ts";
import { layout, type Edge, type Layout, type Place } from "./layout.ts";

const SWITCH = { width: 74, height: 30 };
const HOST = { width: 88, height: 26 };
const BAR = { width: 9, height: 40 };

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

  constructor(private readonly host: HTMLElement, private readonly model: Model, private readonly selection: Selection) {
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
    const crowded = this.current!.shape === "rows" && this.spacing(place) < HOST.width + 6;
    const size = place.kind === "switch" ? SWITCH : HOST;
    const width = crowded ? Math.max(this.spacing(place) - 6, 26) : size.width;
    const count = place.members.length;
    const name = place.name;
    const most = Math.floor((width - 10) / 6.6) - (count > 1 ? 4 : 0);
    const short = name.length > most ? crowded ? shortName(name, most) : `${name.slice(0, Math.max(most - 1, 1))}…` : name;
    return drawn("g", { class: `place ${place.kind}`, transform: `translate(${place.x} ${place.y})` },
      drawn("title", {}, count > 1 ? `${count} hosts: ${place.members[0]} … ${place.members[count - 1]}` : name),
      count > 1 ? drawn("rect", { class: "behind", x: -width / 2 + 3, y: -size.height / 2 - 3, width, height: size.height, rx: 6 }) : "",
      drawn("rect", { x: -width / 2, y: -size.height / 2, width, height: size.height, rx: place.kind === "switch" ? 3 : size.height / 2 }),
      drawn("text", { y: 4, "text-anchor": "middle" }, count > 1 && !crowded ? `${short} ×${count}` : crowded && count > 1 ? `×${count}` : short));
  }

  private spacing(place: Place): number {
    const row = this.current!.places.filter((other) => other.y === place.y).length;
    return this.current!.width / row;
  }

  private drawEdge(edge: Edge, lines: SVGGElement, bars: SVGGElement): void {
    const { from, to } = edge;
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
    const measured = edge.links.filter((link) => link.measured !== null);
    // Each direction keeps to its right.
    const offset = 3;
    const at = (place: Place): [number, number] => [place.x - dy * offset, place.y + dx * offset];
    const [x1, y1] = at(from);
    const [x2, y2] = at(to);
    const shape = { x1, y1, x2, y2 };
    if (measured.length === 0) {
      lines.append(drawn("line", { ...shape, class: "link" }));
      return;
    }
    measured.slice(0, 4).forEach((link, index) => {
      const line = drawn("line", { ...shape, class: "link measured" });
      lines.append(line);
      const dense = this.model.scenario.ports.length > 24;
      const start = leave(from, dx, dy) + (this.current!.shape === "columns" ? 16 : 12) + index * (BAR.width + 5);
      const note = this.current!.shape === "columns" && index === 0 ? linkNote(x1, y1, x2, y2) : null;
      if (note) bars.append(note);
      bars.append(this.drawPort(link, line, note, x1 + dx * start, y1 + dy * start, dense));
    });
  }

  private drawPort(link: Link, line: SVGElement, note: SVGTextElement | null, x: number, y: number, dense: boolean): SVGElement {
    const port = link.measured!;
    const height = dense ? 22 : BAR.height;
    const width = dense ? 6 : BAR.width;
    const title = drawn("title");
    const fill = drawn("rect", { class: "queue", x: -width / 2, width, y: height / 2, height: 0 });
    const levels = drawn("g", { class: "thresholds" });
    const choose = (): void => this.selection.toggle(port);
    const group = drawn("g", {
      class: "port", transform: `translate(${x} ${y})`, role: "button",
      // With many ports the list beside is the keyboard's way.
      tabindex: this.model.scenario.ports.length <= 16 ? 0 : -1,
      click: choose,
      keydown: (event: KeyboardEvent) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      },
    },
      title,
      drawn("rect", { class: "target", x: -width / 2 - 5, y: -height / 2 - 5, width: width + 10, height: height + 10, rx: 3 }),
      drawn("rect", { class: "track", x: -width / 2, y: -height / 2, width, height }),
      fill, levels);
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
    const last = run.series.time.length - 1;
    const queue = last >= 0 ? columns.queue.at(last) : 0;
    const load = loadOf(run, mark.port, mark.link.rate);
    const thresholds = holdingAt(thresholdsOf(this.model, run.state, mark.port), run.series.last).map(({ bytes }) => bytes);
    const largest = (this.largest[mark.port] = Math.max(this.largest[mark.port] ?? 0, queue));
    const near = thresholds.filter((value) => value < 4 * largest || largest === 0);
    const top = Math.max(largest, ...near, 1500) * 1.15;
    const height = Number(mark.group.querySelector(".track")!.getAttribute("height"));
    const width = Number(mark.fill.getAttribute("width"));
    const filled = Math.min(queue / top, 1) * height;
    mark.fill.setAttribute("y", String(height / 2 - filled));
    mark.fill.setAttribute("height", String(filled));
    mark.levels.replaceChildren(...near.map((value) => drawn("line", {
      x1: -width / 2 - 3, x2: width / 2 + 3, y1: height / 2 - (value / top) * height, y2: height / 2 - (value / top) * height,
    })));
    mark.line.setAttribute("style", `stroke: ${loadColour(load)}`);
    const name = scenario.ports[mark.port]!.name;
    mark.group.setAttribute("aria-pressed", String(this.selection.has(mark.port)));
    mark.group.setAttribute("aria-label", `Port ${name}`);
    if (mark.note) setText(mark.note, `${readable(mark.link.rate, "bits/s", 3)} · ${Math.round(load * 100)} %`);
    setText(mark.title, `${name}: load ${plain(load * 100, 3)} %, queue ${readable(queue, "bytes", 3)}`);
  }
}

// Words above the middle of a link.
function linkNote(x1: number, y1: number, x2: number, y2: number): SVGTextElement {
  return drawn("text", { class: "note", x: (x1 + x2) / 2 + 8, y: (y1 + y2) / 2 - 10, "text-anchor": "middle" });
}

// How far a line runs inside a place's box.
function leave(place: Place, dx: number, dy: number): number {
  const { width, height } = place.kind === "switch" ? SWITCH : HOST;
  return Math.min(width / 2 / Math.max(Math.abs(dx), 1e-6), height / 2 / Math.max(Math.abs(dy), 1e-6));
}

// A name's beginning and number: "leaf12" as "l12".
function shortName(name: string, most: number): string {
  const number = /\d+(?:[-_.]\d+)*$/.exec(name)?.[0] ?? "";
  const short = name[0]! + number;
  return short.length <= Math.max(most, 3) ? short : number.slice(-Math.max(most, 2));
}

/** The share of its rate that a port sent over the last samples (the last fiftieth of the run, or eight samples). */
function loadOf(run: Run, port: number, rate: number): number {
  const { time } = run.series;
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

/** Says what the colours and the bars mean. */
export function key(): HTMLElement {
  return element("p", { class: "aside key" },
    "Load ", element("span", { class: "scale", "aria-hidden": "true" }), " 0 to 100 % of the link's rate. Bar: queue, lines: thresholds. Choose a port for the plots by a click.");
}
