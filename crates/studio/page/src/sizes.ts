// The classes of sizes of transfers, as the crate weir-results has them.
import type { Axis } from "./axis.ts";

/** Each with its name in files, and where it stands on an axis: at its upper end, the open one ten times further. */
export const SIZES = [
  { name: "1KB", at: 1e3 }, { name: "10KB", at: 1e4 }, { name: "100KB", at: 1e5 }, { name: "1MB", at: 1e6 },
  { name: "10MB", at: 1e7 }, { name: "100MB", at: 1e8 }, { name: "above", at: 1e9 },
];

export function sizeAxis(): Axis {
  return {
    name: "size up to", unit: "bytes", logarithmic: true,
    marks: SIZES.map(({ name, at }) => ({ at, text: name === "above" ? "∞" : name })),
  };
}
