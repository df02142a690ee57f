// Quantities as the scenario file writes them: "30KB", "1Gbps", "20us". Read from fields, written to
// labels and axes.
import type { Unit } from "./protocol.ts";

type Scale = [suffix: string, factor: number];

const SCALES: Record<Unit, Scale[]> = {
  bytes: [["B", 1], ["KB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]],
  "bits/s": [["bps", 1], ["Kbps", 1e3], ["Mbps", 1e6], ["Gbps", 1e9], ["Tbps", 1e12]],
  seconds: [["ns", 1e-9], ["us", 1e-6], ["ms", 1e-3], ["s", 1]],
  ratio: [],
  packets: [],
  count: [],
};
const ALSO_READ: Partial<Record<Unit, Scale[]>> = {
  bytes: [["kB", 1e3], ["KiB", 1 << 10], ["MiB", 1 << 20], ["GiB", 1 << 30], ["TiB", 2 ** 40]],
  "bits/s": [["kbps", 1e3], ["bits/s", 1]],
  seconds: [["µs", 1e-6], ["min", 60], ["h", 3600]],
};

/** What a field of this unit accepts, for messages. */
function accepted(unit: Unit): string {
  const scales = SCALES[unit];
  return scales.length === 0 ? "a number" : `a number with ${scales.map(([suffix]) => suffix).join(", ")}`;
}

/** The number behind a quantity's text, or why it is none. */
export function parseQuantity(text: string, unit: Unit): { value: number } | { error: string } {
  const match = /^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([^\d\s.]\S*)?\s*$/i.exec(text);
  const wrong = { error: `"${text.trim()}" is not ${accepted(unit)}` };
  if (!match) return wrong;
  const number = Number(match[1]);
  const suffix = match[2];
  const scales = [...SCALES[unit], ...(ALSO_READ[unit] ?? [])];
  if (suffix === undefined) {
    return scales.length === 0 || number === 0 ? { value: number } : { error: `"${text.trim()}" lacks its unit: ${accepted(unit)}` };
  }
  if (unit === "ratio" && suffix === "%") return { value: number / 100 };
  if ((unit === "packets" || unit === "count") && suffix === unit) return { value: number };
  const scale = scales.find(([name]) => name === suffix);
  return scale ? { value: Number((number * scale[1]).toPrecision(15)) } : wrong;
}

/** The largest scale that `size` fills. */
export function scaleFor(size: number, unit: Unit): { suffix: string; factor: number } {
  const scales = SCALES[unit];
  if (scales.length === 0) return { suffix: unit === "ratio" || unit === "count" ? "" : unit, factor: 1 };
  const magnitude = Math.abs(size) * (1 + 1e-12);
  let chosen = unit === "seconds" && size === 0 ? scales[scales.length - 1]! : scales[0]!;
  for (const scale of scales) if (magnitude >= scale[1]) chosen = scale;
  return { suffix: chosen[0], factor: chosen[1] };
}

/** The quantity as a scenario file would have it, with at most `digits` significant digits. */
export function formatQuantity(value: number, unit: Unit, digits = 6): string {
  const { suffix, factor } = scaleFor(value, unit);
  return plain(value / factor, digits) + (suffix === "packets" ? " packets" : suffix);
}

/** The quantity for reading: with a space before its unit. */
export function readable(value: number, unit: Unit, digits = 4): string {
  if (!Number.isFinite(value)) return "–";
  const { suffix, factor } = scaleFor(value, unit);
  // A part of a byte is only a mean's.
  const shown = suffix === "B" ? Math.round(value) : value / factor;
  return plain(shown, digits) + (suffix === "" ? "" : ` ${suffix}`);
}

/** A number without an exponent where that is shorter to read. */
export function plain(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return "–";
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 1e15 ? rounded.toExponential() : String(rounded);
}

/** A point on a slider from 0 to 1 for a value. */
export function sliderPosition(value: number, minimum: number, maximum: number, logarithmic: boolean): number {
  if (maximum <= minimum) return 0;
  const clamped = Math.min(Math.max(value, minimum), maximum);
  if (!logarithmic) return (clamped - minimum) / (maximum - minimum);
  const low = logarithmicFloor(minimum, maximum);
  return clamped <= low ? 0 : Math.log(clamped / low) / Math.log(maximum / low);
}

/** The value at a point on a slider, rounded to three digits and, for counts, to a whole number. */
export function sliderValue(position: number, minimum: number, maximum: number, logarithmic: boolean, unit: Unit): number {
  if (position <= 0) return minimum;
  if (position >= 1) return maximum;
  const low = logarithmicFloor(minimum, maximum);
  const exact = logarithmic ? low * (maximum / low) ** position : minimum + position * (maximum - minimum);
  const whole = unit === "packets" || unit === "count" || unit === "bytes" || unit === "bits/s";
  const rounded = Number(exact.toPrecision(3));
  return Math.min(Math.max(whole ? Math.round(rounded) : rounded, minimum), maximum);
}

// A logarithmic slider whose least value is zero begins six decades below its greatest.
function logarithmicFloor(minimum: number, maximum: number): number {
  return minimum > 0 ? minimum : maximum * 1e-6;
}
