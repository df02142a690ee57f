// Estimates with their 95 % intervals, as enforcers and controllers tell them.
import { element } from "../element.ts";
import type { Unit } from "../protocol.ts";
import { plain } from "../quantity.ts";
import { quantity, table } from "./table.ts";

export interface Estimate {
  value: number;
  low?: number | null;
  high?: number | null;
}

export interface FigureKind {
  title: string;
  unit: Unit;
}

/** The figures of connections that are compared. */
const KINDS: Record<string, FigureKind> = {
  retransmits: { title: "Retransmissions", unit: "ratio" },
  rtt: { title: "Round-trip time", unit: "seconds" },
  rtt_min: { title: "Least round-trip time", unit: "seconds" },
  completion: { title: "Completion time, median", unit: "seconds" },
  completion_p99: { title: "Completion time, 99th percentile", unit: "seconds" },
  delivery_rate: { title: "Delivery rate", unit: "bits/s" },
};

export function figureKind(name: string): FigureKind {
  return KINDS[name] ?? { title: name, unit: "ratio" };
}

export function interval(estimate: Estimate | null | undefined, unit: Unit): string {
  if (!estimate) return "–";
  const text = (value: number | null | undefined): string =>
    value === null || value === undefined ? "?" : unit === "ratio" ? `${plain(100 * value, 3)} %` : quantity(value, unit, 3);
  return `${text(estimate.value)} (${text(estimate.low)} to ${text(estimate.high)})`;
}

/** A table of figures with and without what is tried. */
export function figureTable(label: string, figures: Record<string, { treated?: Estimate | null; control?: Estimate | null; difference?: Estimate | null }>): HTMLElement {
  const entries = Object.entries(figures);
  if (entries.length === 0) return element("p", { class: "aside" }, "No figures yet.");
  const hasDifferences = entries.some(([, { difference }]) => difference);
  return table(label, ["Figure", "With it", "Without", ...(hasDifferences ? ["Difference"] : [])], entries.map(([name, { treated, control, difference }]) => {
    const { title, unit } = figureKind(name);
    return [title, interval(treated, unit), interval(control, unit), ...(hasDifferences ? [interval(difference, unit)] : [])];
  }));
}
