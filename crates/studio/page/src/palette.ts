// What tells lines apart: the colours of style.css, dashes and markers.
import type { RunName } from "./protocol.ts";

const names = ["ground", "text", "quiet", "rule", "shade", "level", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"] as const;
type Name = (typeof names)[number];
let known: Partial<Record<Name, string>> = {};

if (typeof matchMedia === "function") {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { known = {}; });
}

export function colour(name: Name): string {
  return (known[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
}

export const COLOURS = 8;

/** What the look of a line depends on. */
export interface Styled {
  /** Its place in the order of colours. */
  index: number;
  run: RunName;
}

/** The colour of a line. Run b has a stronger shade of it. */
export function lineColour({ index, run }: Styled): string {
  const own = colour(`s${index % COLOURS}` as Name);
  return run === "a" ? own : `color-mix(in oklab, ${own} 50%, ${colour("text")})`;
}

/** The dashes of lines of one run, one after the other: a later one leaves those that it covers visible. */
const DASHES = [[], [10, 5], [3, 4], [12, 4, 3, 4]];

/** The dashes of a line; with two runs on the plot they tell these apart: run b is dashed. */
export function lineDash({ index, run }: Styled, hasTwoRuns: boolean): number[] {
  const again = Math.floor(index / COLOURS);
  // Lines that share a colour and a marker have other dashes.
  if (!hasTwoRuns) return DASHES[(index + again) % DASHES.length]!;
  if (run === "b") return again > 0 ? [9, 3, 2, 3] : [7, 4];
  return again > 0 ? [2, 3] : [];
}

// Each in a square from -1 to 1.
const SHAPES = [
  "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
  "M-.9 -.9H.9V.9H-.9Z",
  "M0 -1.1L1.05 .85H-1.05Z",
  "M0 -1.25L1.25 0L0 1.25L-1.25 0Z",
  "M-.9 -.9L.9 .9M.9 -.9L-.9 .9",
  "M0 1.1L-1.05 -.85H1.05Z",
  "M-1.1 0H1.1M0 -1.1V1.1",
  "M-1.1 -.4H1.1V.4H-1.1Z",
];

/** The outline of a line's marker in a square from -1 to 1, as path data of SVG. */
export function markerShape({ index }: Styled): string {
  return SHAPES[index % SHAPES.length]!;
}
