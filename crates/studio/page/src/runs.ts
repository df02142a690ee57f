// Tabs for the two runs, fork, and close.
import * as client from "./client.ts";
import { byId, element } from "./element.ts";
import { tell } from "./message.ts";
import type { Model } from "./model.ts";
import type { RunName } from "./protocol.ts";

export function runs(model: Model): void {
  const tabs = byId("runs");
  const fork = byId<HTMLButtonElement>("fork");
  const close = byId<HTMLButtonElement>("close");
  const tab = (run: RunName, label: string): HTMLButtonElement => {
    const button = element("button", {
      type: "button", role: "tab", id: `tab-${run}`, "aria-controls": "side", click: () => model.choose(run),
      keydown: (event: KeyboardEvent) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        const other: RunName = run === "a" ? "b" : "a";
        model.choose(other);
        byId(`tab-${other}`).focus();
        event.preventDefault();
      },
    }, label);
    return button;
  };
  const buttons = { a: tab("a", "Run a"), b: tab("b", "Run b") };
  tabs.append(buttons.a, buttons.b);
  fork.addEventListener("click", () => {
    // Both runs go on at one speed.
    const speed = model.runs.get("a")?.state.speed ?? null;
    client.fork().then(() => client.setSpeed("b", speed)).then(() => tell(null), tell);
  });
  close.addEventListener("click", () => client.close("b").then(() => tell(null), tell));
  let forked = false;
  model.onChange(() => {
    const two = model.runs.has("b");
    // Whoever forks wants to turn the new run's knobs.
    if (two && !forked) model.choose("b");
    forked = two;
    tabs.hidden = !two;
    fork.hidden = two;
    close.hidden = !two;
    for (const run of ["a", "b"] as const) {
      buttons[run].setAttribute("aria-selected", String(model.chosen === run));
      buttons[run].tabIndex = model.chosen === run ? 0 : -1;
    }
  });
}
