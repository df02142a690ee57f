// The plots over virtual time, which share their range: zooming or panning one moves all.
import type { Model } from "./model.ts";
import { Plot, type PlotSpec } from "./plot.ts";
import { ZoomTimes } from "./zoom-times.ts";

export interface Range {
  from: number;
  to: number;
}

export class Board {
  readonly plots: Plot[] = [];
  readonly times = new ZoomTimes();
  private zoomed: Range | null = null;
  private listeners: (() => void)[] = [];

  constructor(readonly model: Model) {
    model.onChange(() => this.refresh());
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
    const now = this.model.now;
    return { from: 0, to: now > 0 ? now : this.model.scenario.duration };
  }

  zoom(range: Range | null): void {
    if (range && !(range.to - range.from > this.model.scenario.duration * 1e-9)) return;
    this.zoomed = range;
    this.step();
  }

  pan(by: number): void {
    const { from, to } = this.range;
    const width = to - from;
    const start = Math.min(Math.max(from + by, Math.min(0, from)), Math.max(this.model.now - width, from, 0));
    this.zoom({ from: start, to: start + width });
  }

  /** Scales the range about a time: below 1 zooms in. */
  scale(factor: number, about?: number): void {
    const { from, to } = this.range;
    const centre = about ?? (from + to) / 2;
    const start = Math.max(0, centre - (centre - from) * factor);
    const end = Math.min(centre + (to - centre) * factor, Math.max(this.model.now, to));
    this.zoom(start <= 0 && end >= this.model.now ? null : { from: start, to: end });
  }

  refresh(): void {
    for (const plot of this.plots) plot.refresh();
    for (const listener of this.listeners) listener();
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
