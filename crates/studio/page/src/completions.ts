// Completion times as two drawings: their distribution, and the slowdown by size.
import { drawn, element } from "./element.ts";
import type { Completions, SlowdownStatistics } from "./protocol.ts";
import { plain, readable } from "./quantity.ts";

const WIDTH = 460;
const HEIGHT = 230;
const LEFT = 44;
const RIGHT = 30;
const TOP = 10;
const BOTTOM = 44;
/** At most this many groups are drawn. */
const MOST_GROUPS = 8;
const PERCENTILES = ["p50", "p95", "p99"] as const;
const CORNER = { x1: LEFT, x2: WIDTH - RIGHT };

export class CompletionPlots {
  constructor(private readonly host: HTMLElement) {}

  show(completions: Completions[]): void {
    const some = completions.filter(({ cdf }) => cdf.length > 0).slice(0, MOST_GROUPS);
    if (some.length === 0) {
      this.host.replaceChildren(element("p", { class: "aside" }, "No flow with a size has completed yet."));
      return;
    }
    this.host.replaceChildren(
      figure("Completion times", "Fraction of the completed flows that took no longer", distribution(some), legend(some)),
      ...some.flatMap(({ group, slowdown }) => {
        const bins = Object.entries(slowdown?.sizes ?? {}).map(([size, statistics]): Bin => ({ size, ...statistics }));
        return bins.length === 0 ? [] : [figure(`Slowdown of ${group} by size`,
          "Median, 95th and 99th percentile of the sizes up to the one that is named", slowdowns(bins))];
      }));
  }
}

type Bin = SlowdownStatistics & { size: string };

function legend(completions: Completions[]): HTMLElement | string {
  return completions.length < 2 ? "" : element("ul", { class: "legend" }, ...completions.map(({ group }, index) =>
    element("li", {}, element("i", { class: `s${index}`, "aria-hidden": "true" }), group)));
}

function figure(title: string, caption: string, drawing: SVGElement, more: HTMLElement | string = ""): HTMLElement {
  drawing.setAttribute("aria-label", title);
  return element("figure", {}, element("h3", {}, title), more, drawing, element("figcaption", {}, caption));
}

function frame(): SVGSVGElement {
  return drawn("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
}

const decades = (low: number, high: number): number[] => {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) found.push(10 ** power);
  return found;
};

/** A logarithmic axis over whole decades. */
function logarithmic(low: number, high: number, start: number, end: number): { at(value: number): number; marks: number[] } {
  const marks = decades(low, Math.max(high, low * 1.01));
  const [first, last] = [Math.log10(marks[0]!), Math.log10(marks[marks.length - 1]!)];
  return { marks, at: (value) => start + ((Math.log10(value) - first) / Math.max(last - first, 1e-9)) * (end - start) };
}

function horizontal(svg: SVGElement, y: number, label: string): void {
  svg.append(drawn("line", { ...CORNER, y1: y, y2: y, class: "grid" }),
    drawn("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, label));
}

function distribution(completions: Completions[]): SVGElement {
  const svg = frame();
  const bottom = HEIGHT - BOTTOM;
  const positive = completions.map(({ cdf }) => cdf.filter(([seconds]) => seconds > 0));
  const x = logarithmic(Math.min(...positive.map((points) => points[0]?.[0] ?? Infinity)),
    Math.max(...positive.map((points) => points.at(-1)?.[0] ?? 0)), LEFT, WIDTH - RIGHT);
  const y = (fraction: number): number => bottom - fraction * (bottom - TOP);
  for (const fraction of [0, 0.25, 0.5, 0.75, 1]) horizontal(svg, y(fraction), String(fraction));
  for (const mark of x.marks) {
    svg.append(drawn("line", { x1: x.at(mark), x2: x.at(mark), y1: TOP, y2: bottom, class: "grid" }),
      drawn("text", { x: x.at(mark), y: bottom + 18, "text-anchor": "middle" }, readable(mark, "seconds", 3)));
  }
  positive.forEach((points, index) => svg.append(drawn("polyline", {
    points: points.map(([seconds, fraction]) => `${x.at(seconds).toFixed(1)},${y(fraction).toFixed(1)}`).join(" "),
    class: `line s${index}`,
  })));
  return svg;
}

function slowdowns(bins: Bin[]): SVGElement {
  const svg = frame();
  const bottom = HEIGHT - BOTTOM;
  const values = bins.flatMap((bin) => PERCENTILES.flatMap((name) => bin[name] ?? []));
  const y = logarithmic(Math.min(...values, 1), Math.max(...values, 1), bottom, TOP);
  for (const mark of y.marks) horizontal(svg, y.at(mark), plain(mark));
  const step = (WIDTH - LEFT - RIGHT) / bins.length;
  const x = (index: number): number => LEFT + (index + 0.5) * step;
  bins.forEach((bin, index) => svg.append(
    drawn("text", { x: x(index), y: bottom + 18, "text-anchor": "middle" }, bin.size),
    drawn("text", { x: x(index), y: bottom + 34, "text-anchor": "middle", class: "small" }, `n = ${bin.completed.toLocaleString("en")}`)));
  const ends: { name: string; x: number; y: number }[] = [];
  PERCENTILES.forEach((name, line) => {
    const known = bins.flatMap((bin, index) => bin[name] ? [[x(index), y.at(bin[name])] as const] : []);
    svg.append(drawn("polyline", { class: `line s${line}`, points: known.map(([left, top]) => `${left},${top}`).join(" ") }),
      ...known.map(([left, top]) => drawn("circle", { cx: left, cy: top, r: 3, class: `dot s${line}` })));
    const end = known.at(-1);
    if (end) ends.push({ name, x: end[0] + 8, y: end[1] + 4 });
  });
  // Labels that would lie on each other move apart, from the lowest up.
  let below = Infinity;
  for (const { name, x: left, y: top } of ends.sort((a, b) => b.y - a.y)) {
    below = Math.min(top, below - 12);
    svg.append(drawn("text", { x: left, y: below, class: "note" }, name));
  }
  return svg;
}
