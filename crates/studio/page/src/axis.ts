// What a plot's horizontal axis measures: virtual time, a completion time, a size, or another quantity.
import type { Unit } from "./protocol.ts";
import { plain, scaleFor } from "./quantity.ts";
import { logTicks } from "./ticks.ts";

export interface Axis {
  /** What is measured, for the axis and for saved files. */
  name: string;
  unit: Unit;
  logarithmic: boolean;
  /** Where the marks are, instead of at round values. */
  marks?: readonly { at: number; text: string }[];
}

export const TIME: Axis = { name: "time", unit: "seconds", logarithmic: false };

/** Labels for points on an axis, in the unit that suits the largest of them; each in its own on a logarithmic one. */
export function labels(axis: Axis, splits: readonly number[]): string[] {
  const largest = Math.max(...splits.map(Math.abs));
  return splits.map((value) => {
    const mark = axis.marks?.find(({ at }) => at === value);
    if (mark) return mark.text;
    const { factor, suffix } = scaleFor(axis.logarithmic ? value : largest, axis.unit);
    return `${plain(value / factor, 6)} ${suffix}`.trim();
  });
}

/** Marks of a logarithmic axis, or those that an axis names; none means that round values suit. */
export function marksBetween(axis: Axis, from: number, to: number, count: number): number[] | null {
  if (axis.marks) return axis.marks.map(({ at }) => at).filter((at) => at >= from && at <= to);
  return axis.logarithmic ? logTicks(from, to, count) : null;
}

/** A value as an evenly divided axis has it. */
export function even(axis: Axis, value: number): number {
  return axis.logarithmic ? Math.log(value) : value;
}

/** The inverse of `even`. */
export function uneven(axis: Axis, value: number): number {
  return axis.logarithmic ? Math.exp(value) : value;
}
