// The colours of style.css for what is drawn by hand, and the dashes that tell runs apart.

const names = ["ground", "text", "quiet", "rule", "shade", "level", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"] as const;
type Name = (typeof names)[number];
let known: Partial<Record<Name, string>> = {};

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { known = {}; });

export function colour(name: Name): string {
  return (known[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
}

export const COLOURS = 8;

/** The colour of the line at this index. Run b has a stronger shade of it. */
export function lineColour(index: number, run: "a" | "b"): string {
  const own = colour(`s${index % COLOURS}` as Name);
  return run === "a" ? own : `color-mix(in oklab, ${own} 50%, ${colour("text")})`;
}

/** Run b is dashed. Lines that share a colour with an earlier one are dotted. */
export function lineDash(index: number, run: "a" | "b"): number[] {
  const again = index >= COLOURS;
  if (run === "b") return again ? [9, 3, 2, 3] : [7, 4];
  return again ? [2, 3] : [];
}
