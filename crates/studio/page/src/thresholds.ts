// A port's thresholds as they were over time: knobs move them.
import type { Model } from "./model.ts";
import { isAction, type RunState, type Threshold } from "./protocol.ts";

/** The values of a threshold and when each began to hold. */
export function levelSteps(model: Model, state: RunState, port: number, threshold: Threshold): { at: number; value: number }[] {
  const knob = thresholdKnob(model, port, threshold);
  const steps = [{ at: 0, value: threshold.bytes }];
  if (knob === null) return steps;
  for (const entry of state.log) {
    if (entry.knob === knob && typeof entry.value === "number") steps.push({ at: entry.at, value: entry.value });
  }
  return steps;
}

/** The knob that moves the threshold: the one that it names, or the port's only one with its value. */
function thresholdKnob(model: Model, port: number, threshold: Threshold): string | null {
  if (threshold.knob !== undefined) return threshold.knob;
  const name = model.scenario.ports[port]!.name;
  const alike = model.scenario.knobs.filter((knob) =>
    !isAction(knob) && knob.unit === "bytes" && knob.value === threshold.bytes && knob.section.includes(name));
  return alike.length === 1 ? alike[0]!.id : null;
}
