// One plot over virtual time: uPlot's canvas, a legend whose entries toggle their lines, and exports.
import uPlot from "uplot";
import type { Board } from "./board.ts";
import { decimate, type Aligned } from "./decimate.ts";
import { Bars, strokeUnlessDense } from "./dense.ts";
import { element, setText } from "./element.ts";
import { exportButtons } from "./export.ts";
import { colour, COLOURS, lineColour, lineDash } from "./palette.ts";
import type { RunName, Unit } from "./protocol.ts";
import { plain, scaleFor } from "./quantity.ts";
import type { Column } from "./series.ts";

export interface Line {
  key: string;
  label: string;
  /** The line's place in the order of colours. */
  index: number;
  run: RunName;
  time: Column;
  values: Column;
  /** The values are cumulated; their rate is shown, times `factor`. */
  counter: boolean;
  factor?: number;
}

/** A value that holds for some time, drawn as a dashed line. */
export interface Level {
  label: string;
  run: RunName;
  value: number;
  from: number;
  until: number;
}

/** A point in time at which something was changed. */
export interface Moment {
  at: number;
  text: string;
}

export interface PlotSpec {
  id: string;
  title: string;
  unit: Unit;
  /** What follows the unit: "/s" for rates. */
  per: string;
  /** Says what is missing while there are no lines; a plot that says nothing is hidden then. */
  empty: string | null;
  lines(): Line[];
  levels(): Level[];
  moments(): Moment[];
}

const HEIGHT = 210;
const AXIS_FONT = '12px system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

export class Plot {
  lines: Line[] = [];
  private chart: uPlot | null = null;
  private readonly hidden = new Set<string>();
  private built = "";
  private readonly unitLabel = element("span", { class: "unit" });
  private readonly legend = element("ul", { class: "legend" });
  private readonly canvasHost = element("div", { class: "canvas" });
  private readonly emptyNote = element("p", { class: "aside" });
  private readonly section: HTMLElement;
  private readonly bars = new Bars();
  /** Only plots that can be seen are drawn. */
  private isVisible = false;
  private values: HTMLElement[] = [];

  constructor(host: HTMLElement, readonly board: Board, readonly spec: PlotSpec) {
    const heading = element("h3", { id: `plot-${spec.id}` }, spec.title, " ", this.unitLabel);
    this.emptyNote.textContent = spec.empty;
    host.append(this.section = element("section", { class: "plot", "aria-labelledby": `plot-${spec.id}` },
      element("div", { class: "plot-head" }, heading, exportButtons(this)),
      this.legend, this.emptyNote, this.canvasHost));
    new ResizeObserver(() => this.resize()).observe(this.canvasHost);
    new IntersectionObserver((entries) => {
      this.isVisible = entries.at(-1)!.isIntersecting;
      if (this.isVisible) this.refresh();
    }, { rootMargin: "80px" }).observe(this.section);
  }

  /** The lines that the legend leaves on. */
  get shown(): Line[] {
    return this.lines.filter((line) => !this.hidden.has(line.key));
  }

  get width(): number {
    return Math.max(this.canvasHost.clientWidth, 200);
  }

  get canvas(): HTMLCanvasElement | null {
    return this.chart?.ctx.canvas ?? null;
  }

  /** What the plot shows, at `columns` pixel columns. */
  sampled(lines: Line[], columns: number): Aligned {
    const { from, to } = this.board.range;
    const views = new Map<Column, Float64Array>();
    const view = (column: Column): Float64Array => {
      const known = views.get(column) ?? column.view();
      views.set(column, known);
      return known;
    };
    return decimate(lines.map((line) => ({
      time: view(line.time), values: view(line.values), counter: line.counter, factor: line.factor ?? 1,
      ...(line.counter ? {} : { blocks: line.values.blocks() }),
    })), from, to, columns);
  }

  /** The unit that suits values up to `size`: its factor and its name. */
  scale(size: number): { factor: number; name: string } {
    if (this.spec.unit === "count" && size >= 1e4) {
      const [factor, name] = size >= 1e6 ? [1e6, "million"] : [1e3, "thousand"];
      return { factor, name: name + this.spec.per };
    }
    const { suffix, factor } = scaleFor(size, this.spec.unit);
    return { factor, name: suffix + this.spec.per };
  }

  refresh(): void {
    this.lines = this.spec.lines();
    const wanted = this.lines.map((line) => `${line.key} ${line.index}`).join("\n");
    if (wanted !== this.built || this.section.hidden !== (wanted === "" && this.spec.empty === null) || (this.lines.length > 0 && !this.chart)) this.build(wanted);
    if (!this.chart || !this.isVisible) return;
    const chart = this.chart;
    const { from, to } = this.board.range;
    const data = this.sampled(this.lines, Math.round(chart.bbox.width / devicePixelRatio) || this.width);
    chart.batch(() => {
      chart.setData(data as uPlot.AlignedData, false);
      chart.setScale("x", { min: from, max: to });
    });
  }

  /** Builds the chart anew, for other colours. */
  rebuild(): void {
    this.built = "";
    this.refresh();
  }

  private resize(): void {
    if (this.chart && this.chart.width !== this.width) {
      this.chart.setSize({ width: this.width, height: HEIGHT });
      this.refresh();
    }
  }

  private build(wanted: string): void {
    this.chart?.destroy();
    this.chart = null;
    this.built = wanted;
    this.emptyNote.hidden = this.lines.length > 0;
    this.section.hidden = this.lines.length === 0 && this.spec.empty === null;
    this.canvasHost.hidden = this.lines.length === 0;
    this.buildLegend();
    if (this.lines.length > 0) this.chart = new uPlot(this.options(), [[]], this.canvasHost);
  }

  private buildLegend(): void {
    this.values = this.lines.map(() => element("span", { class: "value" }));
    this.legend.replaceChildren(...this.lines.map((line, index) => {
      const button = element("button", { type: "button", "aria-pressed": String(!this.hidden.has(line.key)) },
        swatch(line), line.label, this.values[index]!);
      button.addEventListener("click", () => {
        const show = this.hidden.delete(line.key);
        if (!show) this.hidden.add(line.key);
        button.setAttribute("aria-pressed", String(show));
        this.chart?.setSeries(index + 1, { show });
      });
      return element("li", {}, button);
    }));
  }

  private options(): uPlot.Options {
    const axis = { stroke: () => colour("quiet"), font: AXIS_FONT, grid: { stroke: () => colour("rule"), width: 1 }, ticks: { stroke: () => colour("rule"), width: 1, size: 5 } };
    return {
      width: this.width,
      height: HEIGHT,
      padding: [10, 24, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, auto: false, range: (_, min, max) => [min, max] },
        y: { range: (_, __, max) => [0, this.top(max)] },
      },
      axes: [
        { ...axis, size: 34, space: 64, values: (_, splits) => timeLabels(splits) },
        { ...axis, size: (_, labels) => axisWidth(labels), space: 34, values: (chart, splits) => this.valueLabels(chart, splits) },
      ],
      series: [{}, ...this.lines.map((line): uPlot.Series => ({
        show: !this.hidden.has(line.key),
        stroke: () => lineColour(line.index, line.run),
        dash: lineDash(line.index, line.run),
        // Browsers draw thin lines much faster, and many lines read better so.
        width: this.lines.length > 6 ? 1 : 1.4,
        points: { show: false },
        paths: strokeUnlessDense,
      }))],
      cursor: {
        y: false,
        points: { size: 6 },
        drag: { x: true, y: false, setScale: false },
        sync: { key: "weir", filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: () => true } },
        bind: {
          dblclick: () => () => { this.board.zoom(null); return null; },
          mousedown: (chart, _, handler) => (event) => {
            if (!event.shiftKey) return handler(event);
            this.pan(chart, event);
            return null;
          },
        },
      },
      hooks: {
        ready: [(chart) => this.listenToWheel(chart)],
        setSelect: [(chart) => this.selected(chart)],
        setCursor: [(chart) => this.showValues(chart)],
        draw: [(chart) => { this.bars.draw(chart); this.drawMarks(chart); }],
      },
    };
  }

  // The greatest value to show: room above the lines, and for the levels that are not far above them.
  private top(max: number | null): number {
    const highest = max ?? 0;
    const { from, to } = this.board.range;
    const levels = this.spec.levels().filter((level) => level.from <= to && level.until > from);
    const near = levels.map((level) => level.value).filter((value) => value <= 2.5 * highest || highest === 0);
    const top = Math.max(highest, ...near);
    return top > 0 ? top * 1.08 : 1;
  }

  private valueLabels(chart: uPlot, splits: number[]): string[] {
    const { factor, name } = this.scale(chart.scales["y"]?.max ?? 0);
    setText(this.unitLabel, name === "" ? "" : `(${name.replace("/s", name === "/s" ? "per second" : " per second")})`);
    return splits.map((value) => plain(value / factor, 4));
  }

  private selected(chart: uPlot): void {
    if (chart.select.width < 3) return;
    const from = chart.posToVal(chart.select.left, "x");
    const to = chart.posToVal(chart.select.left + chart.select.width, "x");
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.board.zoom({ from, to });
  }

  private pan(chart: uPlot, down: MouseEvent): void {
    let last = down.clientX;
    const move = (event: MouseEvent): void => {
      const { from, to } = this.board.range;
      this.board.pan(((last - event.clientX) * (to - from)) / chart.over.clientWidth);
      last = event.clientX;
    };
    const up = (): void => {
      removeEventListener("mousemove", move);
      removeEventListener("mouseup", up);
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", up);
    down.preventDefault();
  }

  // The plain wheel scrolls the page: sideways it pans, with the control key it zooms.
  private listenToWheel(chart: uPlot): void {
    chart.over.addEventListener("wheel", (event) => {
      const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
      const { from, to } = this.board.range;
      if (event.ctrlKey) {
        const box = chart.over.getBoundingClientRect();
        this.board.scale(1.0025 ** event.deltaY, chart.posToVal(event.clientX - box.left, "x"));
      } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        this.board.pan((sideways * (to - from)) / chart.over.clientWidth);
      } else return;
      event.preventDefault();
    }, { passive: false });
  }

  private showValues(chart: uPlot): void {
    const at = chart.cursor.idx;
    this.lines.forEach((_, index) => {
      const data = chart.data[index + 1];
      const value = at == null || chart.cursor.left == null || chart.cursor.left < 0 ? null : nearestValue(data, at);
      setText(this.values[index]!, value == null ? "" : this.formatted(value));
    });
  }

  private formatted(value: number): string {
    const { factor, name } = this.scale(value);
    return `${plain(value / factor, 3)}${name.startsWith("/") ? "" : " "}${name}`;
  }

  private drawMarks(chart: uPlot): void {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineWidth = devicePixelRatio;
    ctx.strokeStyle = colour("quiet");
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const { at } of this.spec.moments()) {
      const x = chart.valToPos(at, "x", true);
      line(ctx, x, bbox.top, x, bbox.top + bbox.height);
    }
    this.drawLevels(chart);
    ctx.restore();
  }

  private drawLevels(chart: uPlot): void {
    const { ctx, bbox } = chart;
    const labelled = new Set<string>();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    for (const level of this.spec.levels()) {
      ctx.strokeStyle = ctx.fillStyle = colour("level");
      ctx.setLineDash(level.run === "a" ? [6 * devicePixelRatio, 4 * devicePixelRatio] : [2 * devicePixelRatio, 3 * devicePixelRatio]);
      const start = Math.max(chart.valToPos(level.from, "x", true), bbox.left);
      const right = bbox.left + bbox.width;
      const end = level.until === Infinity ? right : chart.valToPos(level.until, "x", true);
      const y = chart.valToPos(level.value, "y", true);
      if (end <= bbox.left || start >= right || y < bbox.top) continue;
      line(ctx, start, y, end, y);
      const text = `${level.label} ${this.formatted(level.value)}`;
      if (end < right || labelled.has(text)) continue;
      labelled.add(text);
      // A rim of the ground keeps the label readable above lines.
      ctx.setLineDash([]);
      ctx.lineWidth = 4 * devicePixelRatio;
      ctx.strokeStyle = colour("ground");
      ctx.strokeText(text, right - 4 * devicePixelRatio, y - 4 * devicePixelRatio);
      ctx.lineWidth = devicePixelRatio;
      ctx.fillText(text, right - 4 * devicePixelRatio, y - 4 * devicePixelRatio);
    }
  }
}

function line(ctx: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

// Lines of several runs do not have a point at every x.
function nearestValue(data: uPlot.AlignedData[number] | undefined, at: number): number | null {
  for (let distance = 0; data && distance < 3; distance++) {
    const value = data[at - distance] ?? data[at + distance];
    if (value != null) return value;
  }
  return null;
}

function swatch(of: Line): HTMLElement {
  const pattern = of.run === "b" ? "dashed" : lineDash(of.index, of.run).length > 0 ? "dotted" : "solid";
  return element("i", { class: `s${of.index % COLOURS} run-${of.run} ${pattern}`, "aria-hidden": "true" });
}

function axisWidth(labels: string[] | null): number {
  return 16 + 7 * Math.max(3, ...(labels ?? []).map((label) => label.length));
}

/** Labels for points in time, in the unit that suits the latest of them. */
export function timeLabels(splits: number[]): string[] {
  const { factor, suffix } = scaleFor(Math.max(...splits.map(Math.abs)), "seconds");
  return splits.map((value) => `${plain(value / factor, 6)} ${suffix}`);
}
