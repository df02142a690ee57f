// The data of a report, as the Rust crate weir-results writes it (src/report/page_data.rs).
import type { Axis } from "../axis.ts";
import type { RunName, Unit } from "../protocol.ts";
import { Column } from "../series.ts";

/** Single-precision numbers, little endian, in Base64; the one number that all points have; or the greatest number, and
    each as so many 65,535ths of it, of 16 bits. */
export type Numbers = string | number | [most: number, parts: string];

export interface LineData {
  /** A place among the ports, groups or flows, or a name of its own. */
  of: number | string;
  run: RunName;
  /** A place among the report's `xs`. */
  x: number;
  y: Numbers;
  low?: Numbers;
  high?: Numbers;
}

export interface LevelData {
  of: number | string;
  label: string;
  value: number;
  from: number;
  until?: number;
}

/** What the lines of a figure are of. */
export type Kind = "ports" | "groups" | "flows";

export interface FigureData {
  id: string;
  title: string;
  caption: string;
  unit: Unit;
  per: string;
  /** A place among the report's `axes`. */
  axis: number;
  /** What is chosen among; all lines are shown without it. */
  of?: Kind;
  logarithmic: boolean;
  top?: number;
  reach: number;
  points: boolean;
  lines: LineData[];
  levels: LevelData[];
}

export interface SectionData {
  title: string;
  note: string;
  warmUp: number;
  changes: { at: number; text: string }[];
  figures: FigureData[];
}

export interface AxisData extends Axis {
  from: number;
  to: number;
}

/** Ports, groups or flows, the worst first, with the means that say so. */
export interface Entries {
  names: string[];
  measures: number[];
  /** So many of the last ones have no lines. */
  leftOut: number;
}

export interface ReportData {
  ports: Entries;
  groups: Entries;
  flows: Entries;
  axes: AxisData[];
  xs: string[];
  sections: SectionData[];
}

/** The numbers of a line with so many points. */
export function decoded(numbers: Numbers, length: number): Float64Array {
  if (typeof numbers === "number") return new Float64Array(length).fill(numbers);
  if (typeof numbers === "string") return singles(numbers);
  const [most, parts] = numbers;
  const view = bytes(parts);
  return Float64Array.from({ length: view.byteLength / 2 }, (_, index) => digits((view.getUint16(2 * index, true) / 65535) * most, 5));
}

function singles(text: string): Float64Array {
  const view = bytes(text);
  return Float64Array.from({ length: view.byteLength / 4 }, (_, index) => digits(view.getFloat32(4 * index, true), 7));
}

function bytes(text: string): DataView {
  return new DataView(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer);
}

// The digits that the encoding has: the others are no part of the value.
function digits(value: number, count: number): number {
  return Number(value.toPrecision(count));
}

/** Columns of numbers, each decoded when it is first asked for. */
export class Columns {
  private readonly xs: (Column | undefined)[] = [];

  constructor(private readonly report: ReportData) {}

  x(place: number): Column {
    return (this.xs[place] ??= filled(singles(this.report.xs[place]!)));
  }

  /** The values of a line whose points are at the places `x`. */
  of(numbers: Numbers, x: number): Column {
    return filled(decoded(numbers, this.x(x).length));
  }
}

function filled(values: Float64Array): Column {
  const column = new Column();
  column.push(values);
  return column;
}
