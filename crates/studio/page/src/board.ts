// Plots over one axis, which share their range: zooming or panning one moves all.
import { even, TIME, uneven, type Axis } from "./axis.ts";
import { Plot, type PlotSpec } from "./plot.ts";
import { ZoomTimes } from "./zoom-times.ts";

export interface Range {
  from: number;
  to: number;
}

/** What a board's plots are of, and how far it reaches. */
export interface Extent {
  /** Where the axis begins. */
  readonly start: number;
  /** How far there is something to show. */
  readonly now: number;
  /** How far there will be: what is shown while there is nothing. */
  readonly duration: number;
  /** The first part of the names of saved files. */
  readonly stem: string;
  /** Calls `listener` after changes. */
  onChange(listener: () => void): void;
}

export class Board {
  readonly plots: Plot[] = [];
  readonly times = new ZoomTimes();
  private zoomed: Range | null = null;
  private listeners: (() => void)[] = [];

  constructor(readonly extent: Extent, readonly axis: Axis = TIME) {
    extent.onChange(() => this.refresh());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  add(host: HTMLElement, spec: PlotSpec): Plot {
    const plot = new Plot(host, this, spec);
    this.plots.push(plot);
    return plot;
  }

  onRange(listener: () => void): void {
    this.listeners.push(listener);
  }

  get isZoomed(): boolean {
    return this.zoomed !== null;
  }

  /** The range that is shown: the zoomed one, or everything so far. */
  get range(): Range {
    if (this.zoomed) return this.zoomed;
    const { start, now, duration } = this.extent;
    return { from: start, to: now > start ? now : duration };
  }

  zoom(range: Range | null): void {
    if (range && !(range.to - range.from > this.extent.duration * 1e-9)) return;
    this.zoomed = range;
    this.step();
  }

  /** Moves the range by a part of its width. */
  pan(part: number): void {
    const { from, to, start, now } = this.ends();
    const width = to - from;
    const moved = Math.min(Math.max(from + part * width, Math.min(start, from)), Math.max(now - width, from, start));
    this.zoom(this.back(moved, moved + width));
  }

  /** Scales the range about a value of the axis: below 1 zooms in. */
  scale(factor: number, about?: number): void {
    const { from, to, start, now } = this.ends();
    const centre = about === undefined ? (from + to) / 2 : even(this.axis, about);
    const first = Math.max(start, centre - (centre - from) * factor);
    const last = Math.min(centre + (to - centre) * factor, Math.max(now, to));
    this.zoom(first <= start && last >= now ? null : this.back(first, last));
  }

  refresh(): void {
    for (const plot of this.plots) plot.refresh();
    for (const listener of this.listeners) listener();
  }

  // The range and the extent as an evenly divided axis has them.
  private ends(): Range & { start: number; now: number } {
    const { from, to } = this.range;
    const { start, now } = this.extent;
    const at = (value: number): number => even(this.axis, value);
    return { from: at(from), to: at(to), start: at(start), now: at(now) };
  }

  private back(from: number, to: number): Range {
    return { from: uneven(this.axis, from), to: uneven(this.axis, to) };
  }

  private step(): void {
    const end = this.times.begin();
    this.refresh();
    end();
  }

  private redraw(): void {
    for (const plot of this.plots) plot.rebuild();
  }
}
