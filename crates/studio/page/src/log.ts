// The changes of the chosen run, undo of the last, and the scenario file that has them.
import * as client from "./client.ts";
import { byId, download, element } from "./element.ts";
import { tell } from "./message.ts";
import type { Model } from "./model.ts";
import { readable } from "./quantity.ts";

export function log(model: Model): void {
  const list = byId<HTMLOListElement>("log");
  const undo = byId<HTMLButtonElement>("undo");
  let shown = "";
  undo.addEventListener("click", () => {
    const run = model.run;
    if (run) client.undo(run.state.run).then(() => tell(null), tell);
  });
  byId("save").addEventListener("click", () => {
    const run = model.run?.state.run;
    if (!run) return;
    const name = `${model.stem}${run === "b" ? "-b" : ""}.toml`;
    client.save(run).then((text) => { tell(null); download(name, text, "application/toml"); }, tell);
  });
  model.onChange(() => {
    const state = model.run?.state;
    if (!state) return;
    const now = JSON.stringify(state.log);
    if (now === shown) return;
    shown = now;
    undo.disabled = state.log.length === 0;
    list.replaceChildren(...state.log.map((entry) =>
      element("li", {}, element("time", {}, readable(entry.at, "seconds", 5)), " ", entry.text)));
    byId("log-empty").hidden = state.log.length > 0;
    list.scrollTop = list.scrollHeight;
  });
}
