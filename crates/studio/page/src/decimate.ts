// Reduces lines to what a plot of a given width can show: the least and the greatest value of every
// pixel column, or, of counters, their mean rate over the column.
import { BLOCK, firstAtLeast, type Blocks } from "./series.ts";

/** A line's samples. `counter` values are cumulated; their rate per second is shown, times `factor`. */
export interface Samplable {
  time: Float64Array;
  values: Float64Array;
  counter: boolean;
  factor?: number;
  /** The extremes of the values' blocks, if they are known. */
  blocks?: Blocks;
}

/** A common x for all lines, and each line's y: a value, null for a gap, undefined for "no point here". */
export type Aligned = [number[], ...(number | null | undefined)[][]];

/** Counters' rates are means over this many pixel columns: single events are no rate. */
const RATE_COLUMNS = 6;

/** The lines between `from` and `to`, with at most two points for each of `columns` pixel columns. */
export function decimate(lines: Samplable[], from: number, to: number, columns: number): Aligned {
  const bases = [...new Set(lines.map((line) => line.time))];
  const ranges = new Map(bases.map((time) => [time, inView(time, from, to)]));
  const most = Math.max(0, ...[...ranges.values()].map(([start, end]) => end - start));
  return most <= 2 * columns ? everySample(lines, bases, ranges, (to - from) * (RATE_COLUMNS / columns)) : byColumn(lines, bases, ranges, from, to, columns);
}

type Range = [start: number, end: number];

// One sample more on either side, so that lines reach the plot's edges.
function inView(time: Float64Array, from: number, to: number): Range {
  const start = Math.max(firstAtLeast(time, from) - 1, 0);
  const end = Math.min(firstAtLeast(time, to) + 1, time.length);
  return [start, Math.max(end, start)];
}

function everySample(lines: Samplable[], bases: Float64Array[], ranges: Map<Float64Array, Range>, bin: number): Aligned {
  const all: number[] = [];
  for (const time of bases) {
    const [start, end] = ranges.get(time)!;
    for (let i = start; i < end; i++) all.push(time[i]!);
  }
  const x = bases.length === 1 ? all : [...new Set(all)].sort((a, b) => a - b);
  return [x, ...lines.map((line) => {
    const y: (number | null | undefined)[] = new Array(x.length).fill(undefined);
    const [start, end] = ranges.get(line.time)!;
    let at = 0;
    let last = start - 1;
    for (let i = start; i < end; i++) {
      while (x[at]! < line.time[i]!) at++;
      if (line.counter && i + 1 < end && (Math.floor(line.time[i]! / bin) === Math.floor(line.time[i + 1]! / bin)
        || isShort(line, last, i, bin))) continue;
      const value = line.counter ? rate(line, last, i) : line.values[i]!;
      last = i;
      y[at] = Number.isNaN(value) ? null : value;
    }
    return y;
  })];
}

function byColumn(
  lines: Samplable[], bases: Float64Array[], ranges: Map<Float64Array, Range>,
  from: number, to: number, columns: number,
): Aligned {
  const width = (to - from) / columns;
  const x: number[] = new Array(2 * columns);
  for (let column = 0; column < columns; column++) {
    x[2 * column] = from + (column + 0.25) * width;
    x[2 * column + 1] = from + (column + 0.75) * width;
  }
  const bounds = new Map(bases.map((time) => [time, columnBounds(time, ranges.get(time)!, from, width, columns)]));
  return [x, ...lines.map((line) =>
    line.counter ? columnRates(line, bounds.get(line.time)!, columns) : columnExtremes(line, bounds.get(line.time)!, columns))];
}

// The index of the first sample of each column, and the end of the last.
function columnBounds(time: Float64Array, [start, end]: Range, from: number, width: number, columns: number): Int32Array {
  const bounds = new Int32Array(columns + 1);
  let i = start;
  for (let column = 0; column < columns; column++) {
    bounds[column] = i;
    i = firstAtLeast(time, from + (column + 1) * width, i, end);
  }
  bounds[columns] = end;
  return bounds;
}

function columnExtremes(line: Samplable, bounds: Int32Array, columns: number): (number | null | undefined)[] {
  const { values, blocks } = line;
  const y: (number | null | undefined)[] = new Array(2 * columns).fill(undefined);
  for (let column = 0; column < columns; column++) {
    let least = Infinity;
    let greatest = -Infinity;
    let leastFirst = true;
    const end = bounds[column + 1]!;
    for (let i = bounds[column]!; i < end; i++) {
      if (blocks && i % BLOCK === 0 && i + BLOCK <= end) {
        const block = i / BLOCK;
        if (blocks.least[block]! < least) { least = blocks.least[block]!; leastFirst = false; }
        if (blocks.greatest[block]! > greatest) { greatest = blocks.greatest[block]!; leastFirst = true; }
        i += BLOCK - 1;
        continue;
      }
      const value = values[i]!;
      if (value < least) { least = value; leastFirst = false; }
      if (value > greatest) { greatest = value; leastFirst = true; }
    }
    if (greatest >= least) {
      y[2 * column] = leastFirst ? least : greatest;
      y[2 * column + 1] = leastFirst ? greatest : least;
    } else if (end > bounds[column]!) {
      y[2 * column] = null;
    }
  }
  return y;
}

function columnRates(line: Samplable, bounds: Int32Array, columns: number): (number | null | undefined)[] {
  const y: (number | null | undefined)[] = new Array(2 * columns).fill(undefined);
  for (let column = 0; column < columns; column += RATE_COLUMNS) {
    const end = Math.min(column + RATE_COLUMNS, columns);
    const last = bounds[end]! - 1;
    if (last < bounds[column]!) continue;
    const value = rate(line, bounds[column]! - 1, last);
    y[column + end] = Number.isNaN(value) ? null : value;
  }
  return y;
}

// Samples that lie close together would give a rate that says nothing: what was counted between them is counted later.
function isShort(line: Samplable, start: number, end: number, bin: number): boolean {
  return start >= 0 && line.time[end]! - line.time[start]! < bin / 2;
}

// A counter's growth per second between two samples; before the first one it is zero at time zero.
function rate(line: Samplable, start: number, end: number): number {
  const before = start < 0 ? 0 : line.values[start]!;
  const since = start < 0 ? 0 : line.time[start]!;
  const span = line.time[end]! - since;
  return span > 0 ? ((line.values[end]! - before) / span) * (line.factor ?? 1) : NaN;
}
