// The header: virtual time, play and pause, step, restart, speed, and the keyboard.
import type { Board } from "./board.ts";
import * as client from "./client.ts";
import { byId, element, setText } from "./element.ts";
import { tell } from "./message.ts";
import type { Model } from "./model.ts";
import type { RunName, RunState } from "./protocol.ts";
import { formatQuantity, readable, parseQuantity, plain, scaleFor } from "./quantity.ts";
import { whenSettled } from "./settle.ts";

/** Virtual seconds per second; null is as fast as the machine can. */
const SPEEDS: (number | null)[] = [null, 1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6];

export function controls(model: Model, board: Board): void {
  const play = byId<HTMLButtonElement>("play");
  const time = byId<HTMLInputElement>("time");
  const speed = byId<HTMLSelectElement>("speed");
  const step = byId<HTMLInputElement>("step-by");
  const { duration } = model.scenario;
  let dragging = false;

  const onAll = (ask: (run: RunName) => Promise<void>): Promise<void> => !model.isSimulated ? Promise.resolve() : Promise.all(model.all.map((run) => ask(run.state.run))).then(() => tell(null), (error: unknown) => tell(error));
  const playing = (): boolean => model.all.some((run) => run.state.status === "playing" || run.state.status === "replaying");
  const toggle = (): Promise<void> => onAll((run) => client.control(run, playing() ? "pause" : "play"));
  const stepBy = (): number => {
    const parsed = parseQuantity(step.value, "seconds");
    return "value" in parsed && parsed.value > 0 ? parsed.value : defaultStep(duration);
  };
  const forward = (): Promise<void> => onAll((run) => client.control(run, "step", { by: stepBy() }));
  const seek = (to: number): Promise<void> =>
    onAll((run) => client.control(run, "seek", { to: Math.min(Math.max(to, 0), duration) }));

  step.value = formatQuantity(defaultStep(duration), "seconds");
  step.addEventListener("change", () => { step.value = formatQuantity(stepBy(), "seconds"); });
  play.addEventListener("click", () => void toggle());
  byId("step").addEventListener("click", () => void forward());
  byId("restart").addEventListener("click", () => void onAll((run) => client.control(run, "restart")));

  time.max = String(duration);
  time.addEventListener("input", () => {
    dragging = true;
    setText(byId("now"), timeText(Number(time.value), duration));
  });
  whenSettled(time, () => {
    dragging = false;
    void seek(Number(time.value));
  });

  const option = (value: number | null): HTMLOptionElement => element("option", { value: String(value) }, speedText(value));
  speed.replaceChildren(...SPEEDS.map(option));
  speed.addEventListener("change", () => {
    const value = speed.value === "null" ? null : Number(speed.value);
    void onAll((run) => client.setSpeed(run, value));
  });

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || takesKeys(event.target)) return;
    const keys: Record<string, () => void> = {
      " ": () => void toggle(),
      ArrowRight: () => event.shiftKey ? board.pan(0.1) : void forward(),
      ArrowLeft: () => event.shiftKey ? board.pan(-0.1) : void seek(model.now - stepBy()),
      Home: () => void seek(0),
      "+": () => board.scale(0.5),
      "-": () => board.scale(2),
      "0": () => board.zoom(null),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  model.onChange(() => {
    const states = model.all.map((run) => run.state);
    const first = states[0];
    if (!first) return;
    const going = playing();
    play.setAttribute("aria-label", going ? "Pause" : "Play");
    play.classList.toggle("going", going);
    play.disabled = states.every((state) => state.status === "failed" || (state.status === "ended" && !going));
    // On the way back to the present after a change, the present is what there are samples of.
    const now = Math.max(...model.all.map(({ state, series }) => state.status === "replaying" ? Math.max(state.now, series.last) : state.now));
    if (!dragging) {
      time.value = String(now);
      time.setAttribute("aria-valuetext", readable(now, "seconds"));
      setText(byId("now"), timeText(now, duration));
    }
    if (document.activeElement !== speed) showSpeed(speed, first.speed, option);
    setText(byId("status"), model.scenario.kind === "live" && going ? "Running live" : states.map((state) => statusText(state, states.length > 1)).join(" · "));
    byId("status").classList.toggle("failed", states.some((state) => state.status === "failed"));
  });
}

function showSpeed(select: HTMLSelectElement, speed: number | null, option: (value: number | null) => HTMLOptionElement): void {
  if (![...select.options].some(({ value }) => value === String(speed))) select.append(option(speed));
  select.value = String(speed);
}

function speedText(speed: number | null): string {
  if (speed === null) return "as fast as it can";
  return speed === 1 ? "1 s per second (real time)" : `${readable(speed, "seconds")} per second`;
}

// Both times in the unit of the longer one, with as many decimals as a step needs.
function timeText(now: number, duration: number): string {
  const { factor, suffix } = scaleFor(duration, "seconds");
  const decimals = Math.max(0, Math.ceil(-Math.log10(duration / factor / 2000)));
  return `${(now / factor).toFixed(decimals)} of ${plain(duration / factor, 6)} ${suffix}`;
}

function defaultStep(duration: number): number {
  return Number((duration / 300).toPrecision(1));
}

function statusText(state: RunState, several: boolean): string {
  const words = {
    playing: "Playing", paused: "Paused", ended: "Ended", replaying: "Simulating", failed: "Failed",
  }[state.status];
  const at = several && state.status !== "failed" && state.status !== "replaying" ? ` at ${readable(state.now, "seconds")}` : "";
  return `${several ? `${state.run}: ` : ""}${words}${at}${state.error ? `: ${state.error}` : ""}`;
}

// Fields, sliders and buttons have their own use for the keys.
function takesKeys(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, select, textarea, button, summary, a, [role=button], [role=tab]") !== null;
}
