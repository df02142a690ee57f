// Completion times as two drawings: their distribution, and the slowdown by size.
import { drawn, element } from "./element.ts";
import type { Completions } from "./protocol.ts";
import { plain, readable } from "./quantity.ts";

const WIDTH = 460;
const HEIGHT = 230;
const LEFT = 44;
const RIGHT = 14;
const TOP = 10;
const BOTTOM = 44;
const PERCENTILES = ["p50", "p95", "p99"] as const;
const CORNER = { x1: LEFT, x2: WIDTH - RIGHT };

export class CompletionPlots {
  constructor(private readonly host: HTMLElement) {}

  show(completions: Completions): void {
    const count = completions.slowdown.reduce((sum, bin) => sum + bin.count, 0);
    if (completions.cdf.length === 0) {
      this.host.replaceChildren(element("p", { class: "aside" }, "No flow has completed yet."));
      return;
    }
    this.host.replaceChildren(
      figure("Completion times", `Fraction of ${count > 0 ? count.toLocaleString("en") : "all"} completed flows`, distribution(completions.cdf)),
      ...(completions.slowdown.length > 0 ? [figure("Slowdown by size", "Median, 95th and 99th percentile of each size", slowdown(completions))] : []));
  }
}

function figure(title: string, caption: string, drawing: SVGElement): HTMLElement {
  drawing.setAttribute("aria-label", title);
  return element("figure", {}, element("h3", {}, title), drawing, element("figcaption", {}, caption));
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

function distribution(cdf: [number, number][]): SVGElement {
  const svg = frame();
  const bottom = HEIGHT - BOTTOM;
  const positive = cdf.filter(([seconds]) => seconds > 0);
  const x = logarithmic(positive[0]?.[0] ?? 1e-6, positive.at(-1)?.[0] ?? 1, LEFT, WIDTH - RIGHT);
  const y = (fraction: number): number => bottom - fraction * (bottom - TOP);
  for (const fraction of [0, 0.25, 0.5, 0.75, 1]) horizontal(svg, y(fraction), String(fraction));
  for (const mark of x.marks) {
    svg.append(drawn("line", { x1: x.at(mark), x2: x.at(mark), y1: TOP, y2: bottom, class: "grid" }),
      drawn("text", { x: x.at(mark), y: bottom + 18, "text-anchor": "middle" }, readable(mark, "seconds", 3)));
  }
  const points = positive.map(([seconds, fraction]) => `${x.at(seconds).toFixed(1)},${y(fraction).toFixed(1)}`);
  svg.append(drawn("polyline", { points: points.join(" "), class: "line s0" }));
  return svg;
}

function slowdown({ slowdown: bins }: Completions): SVGElement {
  const svg = frame();
  const bottom = HEIGHT - BOTTOM;
  const values = bins.flatMap((bin) => PERCENTILES.map((name) => bin[name])).filter((value) => value > 0);
  const y = logarithmic(Math.min(...values, 1), Math.max(...values, 1), bottom, TOP);
  for (const mark of y.marks) horizontal(svg, y.at(mark), plain(mark));
  const step = (WIDTH - LEFT - RIGHT) / bins.length;
  const x = (index: number): number => LEFT + (index + 0.5) * step;
  bins.forEach((bin, index) => svg.append(
    drawn("text", { x: x(index), y: bottom + 18, "text-anchor": "middle" }, bin.bin),
    drawn("text", { x: x(index), y: bottom + 34, "text-anchor": "middle", class: "small" }, `n = ${bin.count.toLocaleString("en")}`)));
  PERCENTILES.forEach((name, line) => {
    const known = bins.flatMap((bin, index) => bin.count > 0 && bin[name] > 0 ? [[x(index), y.at(bin[name])] as const] : []);
    svg.append(drawn("polyline", { class: `line s${line}`, points: known.map(([left, top]) => `${left},${top}`).join(" ") }),
      ...known.map(([left, top]) => drawn("circle", { cx: left, cy: top, r: 3, class: `dot s${line}` })));
    const end = known.at(-1);
    if (end) svg.append(drawn("text", { x: Math.min(end[0] + 8, WIDTH - RIGHT - 22), y: end[1] - 6, class: "note" }, name));
  });
  return svg;
}
