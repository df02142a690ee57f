// Which ports the plots show: the worst first (largest mean queue), until somebody chooses.
import type { Model } from "./model.ts";
import { meanOverTime } from "./series.ts";

export const MOST_PORTS = 16;
/** This many of the worst ports are shown when nobody has chosen. */
const SHOWN = 4;

export class Selection {
  private chosen: number[] | null = null;
  private ranked: { port: number; mean: number }[] = [];
  private rankedAt = -Infinity;
  private listeners: (() => void)[] = [];

  constructor(private readonly model: Model) {
    this.ranked = model.scenario.ports.map((_, port) => ({ port, mean: 0 }));
    model.onChange(() => this.rank());
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  get isManual(): boolean {
    return this.chosen !== null;
  }

  /** The measured ports whose lines are shown. */
  get ports(): number[] {
    return this.chosen ?? this.ranked.slice(0, SHOWN).map(({ port }) => port).sort((a, b) => a - b);
  }

  /** All measured ports with their mean queues, the worst first. */
  get worst(): readonly { port: number; mean: number }[] {
    return this.ranked;
  }

  has(port: number): boolean {
    return this.ports.includes(port);
  }

  toggle(port: number): void {
    const ports = this.ports;
    if (ports.includes(port)) this.chosen = ports.filter((other) => other !== port);
    else if (ports.length < MOST_PORTS) this.chosen = [...ports, port];
    this.tell();
  }

  /** Leaves the choice to the queues again. */
  release(): void {
    this.chosen = null;
    this.rankedAt = -Infinity;
    this.rank();
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
    this.model.changed();
  }

  // At most once a second: lines that come and go are hard to read.
  private rank(): void {
    const run = this.model.runs.get("a");
    if (!run || performance.now() - this.rankedAt < 1000) return;
    this.rankedAt = performance.now();
    const { time, ports } = run.series;
    this.ranked = ports
      .map((columns, port) => ({ port, mean: meanOverTime(time, columns.queue, -Infinity, Infinity) || 0 }))
      .sort((x, y) => y.mean - x.mean || x.port - y.port);
    for (const listener of this.listeners) listener();
  }
}
