// One plot: uPlot's canvas, a legend whose entries toggle their lines, and exports.
import uPlot from "uplot";
import { labels, marksBetween } from "./axis.ts";
import type { Board } from "./board.ts";
import { decimate, type Aligned } from "./decimate.ts";
import { Bars, strokeUnlessDense } from "./dense.ts";
import { element, setText } from "./element.ts";
import { exportButtons } from "./export.ts";
import { clipped, drawBand, drawLevels, drawMarkers, drawMoments, drawSpans } from "./overlay.ts";
import { colour, lineColour, lineDash } from "./palette.ts";
import type { RunName, Unit } from "./protocol.ts";
import { plain, scaleFor } from "./quantity.ts";
import { firstAtLeast, type Column } from "./series.ts";
import { swatch } from "./swatch.ts";
import { logTicks } from "./ticks.ts";

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
  /** The least and the greatest values around the line's, which are shaded. */
  band?: { low: Column; high: Column };
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

/** A part of the axis that is shaded. */
export interface Span {
  label: string;
  from: number;
  to: number;
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
  spans?(): Span[];
  /** Whether the vertical axis is logarithmic. */
  logarithmic?: boolean;
  /** The end of the vertical axis, instead of room above the greatest value. */
  top?: number;
  /** What the vertical axis reaches at least while everything is shown, so that plots can be compared. */
  reach?: number;
  /** Whether each point has a marker: there are few, and nothing was measured between them. */
  points?: boolean;
}

const HEIGHT = 210;
/** So many points away a line's value still counts as its value under the pointer. */
const NEAR = 40;
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

  /** Whether there are lines of both runs. */
  get hasTwoRuns(): boolean {
    return this.lines.some(({ run }) => run === "b");
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
    const wanted = this.lines.map((line) => `${line.key} ${line.label} ${line.index}`).join("\n");
    const isHidden = wanted === "" && this.spec.empty === null;
    if (wanted !== this.built || this.section.hidden !== isHidden || (this.lines.length > 0 && !this.chart)) this.build(wanted);
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
        swatch(line, this.hasTwoRuns), element("span", {}, line.label), this.values[index]!);
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
        x: { time: false, auto: false, distr: this.board.axis.logarithmic ? 3 : 1, range: (_, min, max) => [min, max] },
        y: { distr: this.spec.logarithmic ? 3 : 1, range: (_, min, max) => this.extremes(min, max) },
      },
      axes: [
        { ...axis, size: 34, space: 64, values: (_, splits) => labels(this.board.axis, splits), ...this.ownMarks() },
        {
          ...axis, size: (_, texts) => axisWidth(texts), space: 34, values: (chart, splits) => this.valueLabels(chart, splits),
          ...(this.spec.logarithmic && { splits: (_, __, min, max) => logTicks(min, max, 6), filter: (_, splits) => splits }),
        },
      ],
      series: [{}, ...this.lines.map((line): uPlot.Series => ({
        show: !this.hidden.has(line.key),
        stroke: () => lineColour(line),
        dash: lineDash(line, this.hasTwoRuns),
        // Browsers draw thin lines much faster, and many lines read better so.
        width: this.lines.length > 6 ? 1 : 1.4,
        points: { show: false },
        // Rates have few points, however many pixels there are.
        ...(line.counter ? {} : { paths: strokeUnlessDense }),
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
        drawAxes: [(chart) => clipped(chart, () => {
          drawSpans(chart, this.spec.spans?.() ?? []);
          for (const line of this.shown) drawBand(chart, line);
        })],
        draw: [(chart) => clipped(chart, () => {
          this.bars.draw(chart);
          drawMoments(chart, this.spec.moments());
          drawLevels(chart, this.spec.levels(), (value) => this.formatted(value));
          if (this.lines.length > 1 || this.spec.points) {
            drawMarkers(chart, this.lines, (line) => !this.hidden.has(line.key), this.spec.points ?? false);
          }
        })],
      },
    };
  }

  // Marks at other places than uPlot's.
  private ownMarks(): Pick<uPlot.Axis, "splits" | "filter"> {
    const { axis } = this.board;
    if (!axis.logarithmic && !axis.marks) return {};
    return {
      splits: (chart, _, from, to) => marksBetween(axis, from, to, Math.max(2, Math.floor(chart.width / 75))) ?? [from, to],
      filter: (_, splits) => splits,
    };
  }

  // The ends of the vertical axis.
  extremes(min: number | null, max: number | null): [number, number] {
    if (!this.spec.logarithmic) return [Math.min(0, (min ?? 0) * 1.08), this.spec.top ?? this.top(max)];
    const bands = this.bandValues();
    const least = Math.min(min ?? 1, ...bands.filter((value) => value > 0));
    const greatest = Math.max(max ?? 1, ...bands, least * 2, this.reach);
    const rounded = logTicks(least / 10, greatest * 10, 1000);
    return [
      rounded.filter((value) => value <= least * (1 + 1e-9)).at(-1) ?? least,
      rounded.find((value) => value >= greatest * (1 - 1e-9)) ?? greatest,
    ];
  }

  private get reach(): number {
    return this.board.isZoomed ? 0 : this.spec.reach ?? 0;
  }

  // The ends of the shown lines' bands in the shown range.
  private bandValues(): number[] {
    const { from, to } = this.board.range;
    return this.shown.flatMap(({ time, band }) => {
      if (!band) return [];
      const times = time.view();
      const [start, end] = [Math.max(firstAtLeast(times, from) - 1, 0), firstAtLeast(times, to) + 1];
      return [...band.low.view().subarray(start, end), ...band.high.view().subarray(start, end)].filter((value) => !Number.isNaN(value));
    });
  }

  // The greatest value to show: room above the lines, and for the levels that are not far above them.
  private top(max: number | null): number {
    const highest = Math.max(max ?? 0, ...this.bandValues(), this.reach);
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
      this.board.pan((last - event.clientX) / chart.over.clientWidth);
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
      if (event.ctrlKey) {
        const box = chart.over.getBoundingClientRect();
        this.board.scale(1.0025 ** event.deltaY, chart.posToVal(event.clientX - box.left, "x"));
      } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        this.board.pan(sideways / chart.over.clientWidth);
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
}

// Lines that have no point at an x of others' have one near it.
function nearestValue(data: uPlot.AlignedData[number] | undefined, at: number): number | null {
  for (let distance = 0; data && distance < NEAR; distance++) {
    for (const value of [data[at - distance], data[at + distance]]) if (value !== undefined) return value;
  }
  return null;
}

function axisWidth(texts: string[] | null): number {
  return 16 + 7 * Math.max(3, ...(texts ?? []).map((text) => text.length));
}
