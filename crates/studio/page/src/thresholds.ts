// A port's thresholds as they were over time: knobs move them.
import type { Model } from "./model.ts";
import type { RunState, Threshold } from "./protocol.ts";

/** The thresholds of a measured port in a run, each for as long as it held; none until the server has told them. */
export function thresholdsOf(model: Model, state: RunState, port: number): Threshold[] {
  return model.thresholds.get(state.run)?.[port] ?? [];
}

/** Those that hold at a time. */
export function holdingAt(thresholds: Threshold[], time: number): Threshold[] {
  return thresholds.filter(({ from, until }) => (from ?? 0) <= time && (until == null || time < until));
}
