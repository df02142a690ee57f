// The samples of one run, as columns that grow.
import { progressOf, type Progress } from "./progress.ts";
import type { Samples } from "./protocol.ts";

/** The samples of a block of a column. */
export const BLOCK = 16;

/** The least and the greatest number of each whole block of a column; infinite where it has none. */
export interface Blocks {
  least: Float64Array;
  greatest: Float64Array;
}

/** Numbers of a column, in a buffer that doubles when it is full. */
export class Column {
  private buffer = new Float64Array(64);
  private least = new Float64Array(0);
  private greatest = new Float64Array(0);
  /** The blocks whose extremes are known. */
  private known = 0;
  length = 0;
  /** Whether it has had no number yet. */
  isEmpty = true;

  push(values: ArrayLike<number | null>, start = 0): void {
    const needed = this.length + values.length - start;
    if (needed > this.buffer.length) {
      const larger = new Float64Array(Math.max(needed, 2 * this.buffer.length));
      larger.set(this.view());
      this.buffer = larger;
    }
    for (let i = start; i < values.length; i++) {
      const value = values[i] ?? NaN;
      if (!Number.isNaN(value)) this.isEmpty = false;
      this.buffer[this.length++] = value;
    }
  }

  view(): Float64Array {
    return this.buffer.subarray(0, this.length);
  }

  /** The extremes of its blocks, which are computed once. */
  blocks(): Blocks {
    const count = Math.floor(this.length / BLOCK);
    if (count > this.least.length) {
      this.least = extended(this.least, this.known, 2 * count);
      this.greatest = extended(this.greatest, this.known, 2 * count);
    }
    for (; this.known < count; this.known++) {
      let [least, greatest] = [Infinity, -Infinity];
      for (let i = this.known * BLOCK; i < (this.known + 1) * BLOCK; i++) {
        const value = this.buffer[i]!;
        if (value < least) least = value;
        if (value > greatest) greatest = value;
      }
      this.least[this.known] = least;
      this.greatest[this.known] = greatest;
    }
    return { least: this.least, greatest: this.greatest };
  }

  at(index: number): number {
    return index >= 0 && index < this.length ? this.buffer[index]! : NaN;
  }

  truncate(length: number): void {
    this.length = Math.min(this.length, length);
    this.known = Math.min(this.known, Math.floor(this.length / BLOCK));
    if (this.length === 0) this.isEmpty = true;
  }
}

function extended(numbers: Float64Array, kept: number, length: number): Float64Array<ArrayBuffer> {
  const longer = new Float64Array(length);
  longer.set(numbers.subarray(0, kept));
  return longer;
}

/** The first index from `low` on whose time is at least `time`. */
export function firstAtLeast(times: Float64Array, time: number, low = 0, high = times.length): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const PORT_COLUMNS = ["queue", "sent", "marks", "drops"] as const;
export const GROUP_COLUMNS = ["window", "delivered", "marks", "retransmitted", "timeouts"] as const;
export type PortColumns = Record<(typeof PORT_COLUMNS)[number], Column>;
export type GroupColumns = Record<(typeof GROUP_COLUMNS)[number], Column>;

function columns<Name extends string>(names: readonly Name[]): Record<Name, Column> {
  return Object.fromEntries(names.map((name) => [name, new Column()])) as Record<Name, Column>;
}

/** All samples of a run. Live runs sample ports and groups at different times: the columns are as long as theirs. */
export class RunSeries {
  readonly portTime = new Column();
  readonly groupTime = new Column();
  readonly ports: PortColumns[];
  readonly groups: GroupColumns[];
  /** What groups have delivered, by when it can have come, where that is known. */
  private readonly progress: (Progress | null)[];
  /** Grows with every change of the samples. */
  version = 0;

  /** `capacities` are the goodputs of groups that their links carry. */
  constructor(ports: number, groups: number, capacities: (number | null | undefined)[] = []) {
    this.ports = Array.from({ length: ports }, () => columns(PORT_COLUMNS));
    this.groups = Array.from({ length: groups }, () => columns(GROUP_COLUMNS));
    this.progress = this.groups.map((_, group) => progressOf(capacities[group]));
  }

  /** The time of the last sample. */
  get last(): number {
    return Math.max(lastOf(this.portTime), lastOf(this.groupTime));
  }

  /** Adds samples; those that are no later than the last one are known already. Samples of ports alone, or of groups alone, leave the others. */
  append(samples: Samples): void {
    if (samples.ports.length > 0 || samples.groups.length === 0) add(this.portTime, this.ports, PORT_COLUMNS, samples.time, samples.ports);
    if (samples.groups.length > 0 || samples.ports.length === 0) add(this.groupTime, this.groups, GROUP_COLUMNS, samples.time, samples.groups);
    this.progress.forEach((progress, group) => progress?.append(this.groupTime, this.groups[group]!.delivered));
    this.version++;
  }

  /** What a group has delivered, for its goodput over time. */
  delivered(group: number): Column {
    return this.progress[group]?.column ?? this.groups[group]!.delivered;
  }

  /** Forgets the samples at `from` and later. */
  truncate(from: number): void {
    truncate(this.portTime, this.ports, from);
    truncate(this.groupTime, this.groups, from);
    this.progress.forEach((progress, group) => progress?.cut(this.groupTime, this.groups[group]!.delivered));
    this.version++;
  }
}

function lastOf(time: Column): number {
  return time.length === 0 ? 0 : time.at(time.length - 1);
}

function add<Name extends string>(
  time: Column, sets: Record<Name, Column>[], names: readonly Name[], times: number[], values: Record<Name, (number | null)[]>[],
): void {
  let start = 0;
  if (time.length > 0) while (start < times.length && times[start]! <= lastOf(time)) start++;
  if (start === times.length) return;
  const length = time.length + times.length - start;
  const extend = (column: Column, values: ArrayLike<number | null> | undefined): void => {
    column.push(values ?? [], start);
    if (column.length < length) column.push(new Array<null>(length - column.length).fill(null));
    column.truncate(length);
  };
  extend(time, times);
  sets.forEach((set, i) => names.forEach((name) => extend(set[name], values[i]?.[name])));
}

function truncate(time: Column, sets: Record<string, Column>[], from: number): void {
  const length = firstAtLeast(time.view(), from);
  time.truncate(length);
  for (const set of sets) for (const column of Object.values(set)) column.truncate(length);
}

/** The mean over time of a column's samples in [from, to], each weighted by the time since the one before. */
export function meanOverTime(time: Column, values: Column, from: number, to: number): number {
  const times = time.view();
  const numbers = values.view();
  let sum = 0;
  let weight = 0;
  for (let i = Math.max(firstAtLeast(times, from), 1); i < times.length && times[i]! <= to; i++) {
    const width = times[i]! - times[i - 1]!;
    if (Number.isNaN(numbers[i]!)) continue;
    sum += numbers[i]! * width;
    weight += width;
  }
  return weight > 0 ? sum / weight : NaN;
}

/** The mean bits per second at which a column of cumulated bytes grew in [from, to], as far as there are samples. */
export function meanRate(time: Column, bytes: Column, from: number, to: number): number {
  const span = Math.min(to, time.length === 0 ? 0 : time.at(time.length - 1)) - Math.max(from, 0);
  return span > 0 ? (8 * growth(time, bytes, from, to)) / span : NaN;
}

/** How much a cumulated column grew in [from, to]. */
export function growth(time: Column, values: Column, from: number, to: number): number {
  const times = time.view();
  const lastUpTo = (time: number): number => {
    const found = firstAtLeast(times, time);
    return times[found] === time ? found : found - 1;
  };
  const [start, end] = [lastUpTo(from), lastUpTo(to)];
  if (end < 0) return 0;
  // Before the first sample nothing is counted yet.
  return values.at(end) - (start < 0 ? 0 : values.at(start));
}
