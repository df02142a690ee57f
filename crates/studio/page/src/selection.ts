// Which ports or groups the plots show: the worst first, until somebody chooses.
import type { Model } from "./model.ts";
import { meanOverTime, meanRate } from "./series.ts";

/** At most this many are shown: more lines cannot be told apart. */
export const MOST = 16;

/** What there is to choose from. */
export interface Choice {
  names: string[];
  /** How many of the worst are shown when nobody has chosen. */
  shown: number;
  /** What they are ranked by: all of them, or null while it is not known. */
  measures(): number[] | null;
  /** Whether the largest measure is the worst. */
  largestFirst: boolean;
}

/** Measured ports: the largest mean queue is the worst. */
export function portChoice(model: Model): Choice {
  return {
    names: model.scenario.ports.map(({ name }) => name),
    shown: 4,
    measures: () => {
      const series = model.runs.get("a")?.series;
      return series ? series.ports.map(({ queue }) => meanOverTime(series.portTime, queue, -Infinity, Infinity)) : null;
    },
    largestFirst: true,
  };
}

/** Groups: the least mean goodput is the worst. */
export function groupChoice(model: Model): Choice {
  const names = model.scenario.groups.map(({ name }) => name);
  return {
    names,
    shown: Math.min(names.length, MOST),
    measures: () => {
      const series = model.runs.get("a")?.series;
      return series ? series.groups.map(({ delivered }) => meanRate(series.groupTime, delivered, 0, Infinity)) : null;
    },
    largestFirst: false,
  };
}

/** Tells of changes, and of those that a choice makes. */
export interface Changing {
  onChange(listener: () => void): void;
  changed(): void;
}

export class Selection {
  private selected: number[] | null = null;
  private ranked: { index: number; mean: number }[];
  private rankedAt = -Infinity;
  private listeners: (() => void)[] = [];

  constructor(private readonly source: Changing, readonly choice: Choice) {
    this.ranked = choice.names.map((_, index) => ({ index, mean: 0 }));
    source.onChange(() => this.rank());
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  get isManual(): boolean {
    return this.selected !== null;
  }

  /** The indices of those that are shown. */
  get chosen(): number[] {
    return this.selected ?? this.ranked.slice(0, this.choice.shown).map(({ index }) => index).sort((a, b) => a - b);
  }

  /** All, with what they are ranked by, the worst first. */
  get worst(): readonly { index: number; mean: number }[] {
    return this.ranked;
  }

  has(index: number): boolean {
    return this.chosen.includes(index);
  }

  toggle(index: number): void {
    const chosen = this.chosen;
    if (chosen.includes(index)) this.selected = chosen.filter((other) => other !== index);
    else if (chosen.length < MOST) this.selected = [...chosen, index];
    this.tell();
  }

  /** Leaves the choice to the ranking again. */
  release(): void {
    this.selected = null;
    this.rankedAt = -Infinity;
    this.rank();
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
    this.source.changed();
  }

  // At most once a second: lines that come and go are hard to read.
  private rank(): void {
    if (performance.now() - this.rankedAt < 1000) return;
    const measures = this.choice.measures();
    if (!measures) return;
    this.rankedAt = performance.now();
    const sign = this.choice.largestFirst ? -1 : 1;
    this.ranked = measures
      .map((mean, index) => ({ index, mean: mean || 0 }))
      .sort((x, y) => sign * (x.mean - y.mean) || x.index - y.index);
    for (const listener of this.listeners) listener();
  }
}
