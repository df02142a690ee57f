// The knobs of the chosen run: sliders with fields, and buttons for faults.
import * as client from "./client.ts";
import { element, setText } from "./element.ts";
import { reason } from "./message.ts";
import type { Model } from "./model.ts";
import { isAction, type ActionKnob, type Knob, type ValueKnob } from "./protocol.ts";
import { formatQuantity, parseQuantity, sliderPosition, sliderValue } from "./quantity.ts";
import { whenSettled } from "./settle.ts";

/** With more knobs than this there is a field to search them. */
const SEARCHED = 12;
/** With more sections than this only the first ones are open. */
const OPEN_SECTIONS = 4;
const SLIDER_STEPS = 1000;
const UNLIMITED = "unlimited";

/** A knob's row and how to show what it stands at. */
interface Row {
  text: string;
  node: HTMLElement;
  refresh(): void;
}

export function knobs(model: Model, host: HTMLElement): void {
  const sections = new Map<string, Knob[]>();
  for (const knob of model.scenario.knobs) sections.set(knob.section, [...(sections.get(knob.section) ?? []), knob]);
  const rows: Row[] = [];
  const boxes = [...sections].map(([name, list], index) => {
    const own = list.map((knob) => (isAction(knob) ? actionRow(model, knob) : valueRow(model, knob)));
    rows.push(...own);
    const box = element("details", { class: "section", open: index < OPEN_SECTIONS },
      element("summary", {}, sentence(name)), ...own.map((row) => row.node));
    return { box, own };
  });
  if (model.scenario.knobs.length > SEARCHED) {
    const search = element("input", { type: "search", placeholder: "Search the knobs", "aria-label": "Search the knobs" });
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
      boxes.forEach(({ box, own }, index) => {
        let found = 0;
        for (const row of own) {
          row.node.hidden = !words.every((word) => row.text.includes(word));
          if (!row.node.hidden) found++;
        }
        box.hidden = found === 0;
        box.open = words.length > 0 ? found > 0 : index < OPEN_SECTIONS;
      });
    });
    host.append(search);
  }
  host.append(...boxes.map(({ box }) => box));
  if (rows.length === 0) host.append(element("p", { class: "aside" }, "Nothing in this scenario can change while it runs."));
  model.onChange(() => rows.forEach((row) => row.refresh()));
}

function valueRow(model: Model, knob: ValueKnob): Row {
  const id = `knob-${knob.id.replace(/[^\w-]/g, "_")}`;
  const slider = element("input", { type: "range", min: 0, max: SLIDER_STEPS, step: 1, id: `${id}-slider`, "aria-label": `${knob.section}: ${knob.label}`, "data-knob": knob.id });
  const field = element("input", { type: "text", id, class: "quantity", autocomplete: "off", spellcheck: "false", inputmode: "text", "aria-describedby": `${id}-error` });
  const error = element("p", { class: "error", id: `${id}-error`, role: "status" });
  const written = (value: number): string =>
    knob.open && value >= knob.maximum ? UNLIMITED : formatQuantity(value, knob.unit);
  const range = `${formatQuantity(knob.minimum, knob.unit, 4)} to ${knob.open ? UNLIMITED : formatQuantity(knob.maximum, knob.unit, 4)}`;
  const node = element("div", { class: "knob" },
    element("label", { for: id, title: range }, element("code", {}, knob.label)), field, slider, error);
  let dragging = false;
  let shown = NaN;

  const wrong = (text: string): void => {
    setText(error, text);
    field.setAttribute("aria-invalid", String(text !== ""));
  };
  const show = (value: number): void => {
    shown = value;
    field.value = written(value);
    slider.value = String(Math.round(sliderPosition(value, knob.minimum, knob.maximum, knob.logarithmic) * SLIDER_STEPS));
    slider.setAttribute("aria-valuetext", field.value);
  };
  const post = (value: number): void => {
    const run = model.run?.state;
    if (!run || value === model.knobValue(run, knob.id)) return wrong("");
    client.change(run.run, knob.id, value).then(() => wrong(""), (refusal: unknown) => {
      wrong(reason(refusal));
      const now = model.run && model.knobValue(model.run.state, knob.id);
      if (now !== undefined) show(now);
    });
  };
  slider.addEventListener("input", () => {
    dragging = true;
    const value = sliderValue(Number(slider.value) / SLIDER_STEPS, knob.minimum, knob.maximum, knob.logarithmic, knob.unit);
    field.value = written(value);
    slider.setAttribute("aria-valuetext", field.value);
  });
  whenSettled(slider, () => {
    dragging = false;
    post(sliderValue(Number(slider.value) / SLIDER_STEPS, knob.minimum, knob.maximum, knob.logarithmic, knob.unit));
  });
  field.addEventListener("change", () => {
    if (knob.open && field.value.trim() === UNLIMITED) return post(knob.maximum);
    const parsed = parseQuantity(field.value, knob.unit);
    if ("error" in parsed) return wrong(parsed.error);
    if (parsed.value < knob.minimum || parsed.value > knob.maximum) return wrong(`must be from ${range}`);
    post(parsed.value);
  });
  return {
    node,
    text: `${knob.section} ${knob.label}`.toLowerCase(),
    refresh() {
      const run = model.run?.state;
      const value = run && model.knobValue(run, knob.id);
      if (value === undefined || value === shown || dragging || document.activeElement === field) return;
      wrong("");
      show(value);
    },
  };
}

function actionRow(model: Model, knob: ActionKnob): Row {
  const error = element("p", { class: "error", role: "status" });
  const act = (action: string): void => {
    const run = model.run?.state;
    if (!run || buttons.get(action)?.getAttribute("aria-disabled") === "true") return;
    client.act(run.run, knob.id, action).then(() => setText(error, ""), (refusal: unknown) => setText(error, reason(refusal)));
  };
  const buttons = new Map<string, HTMLButtonElement>();
  const button = (action: string): HTMLButtonElement =>
    element("button", { type: "button", class: "small", "data-knob": knob.id, "aria-label": `${sentence(action)} ${knob.label}`, click: () => act(action) }, sentence(action));
  const actions = [knob.action, ...(knob.undo === undefined ? [] : [knob.undo])].map((action) => {
    const made = button(action);
    buttons.set(action, made);
    return made;
  });
  return {
    node: element("div", { class: "knob action" }, element("code", {}, knob.label), element("span", { class: "buttons" }, ...actions), error),
    text: `${knob.section} ${knob.label} ${knob.action}`.toLowerCase(),
    refresh() {
      const isDone = model.run?.state.failed.includes(knob.id) ?? false;
      const [act, undo] = [buttons.get(knob.action), buttons.get(knob.undo ?? "")];
      if (!undo) return;
      // A disabled button would lose the focus.
      for (const [made, isVain] of [[act, isDone], [undo, !isDone]] as const) made?.setAttribute("aria-disabled", String(isVain));
    },
  };
}

const sentence = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
