// The hashes of what the chosen run gives from its start to its end: for comparing it with `weir run` on the saved file.
import * as client from "./client.ts";
import { byId, element, setText } from "./element.ts";
import { reason } from "./message.ts";
import type { Model } from "./model.ts";

export function digest(model: Model): void {
  const button = byId<HTMLButtonElement>("digest");
  const list = byId("digests");
  const note = byId("digest-note");
  let of = "";
  const forget = (): void => {
    of = "";
    list.replaceChildren();
    setText(note, "");
  };
  button.addEventListener("click", () => {
    const run = model.run?.state;
    if (!run) return;
    const asked = `${run.run} ${JSON.stringify(run.log)}`;
    of = asked;
    button.disabled = true;
    setText(note, "The run is simulated from its start to its end …");
    client.digest(run.run).then(({ files }) => {
      if (of !== asked) return;
      setText(note, `Run ${run.run}, from its start to its end: SHA-256 of the files that weir run --no-variants --out DIR writes for the saved scenario.`);
      list.replaceChildren(...files.flatMap(({ name, sha256 }) =>
        [element("dt", {}, name), element("dd", {}, element("code", {}, sha256))]));
    }, (error: unknown) => setText(note, reason(error))).finally(() => { button.disabled = false; });
  });
  // A change makes another run of it.
  model.onChange(() => {
    const run = model.run?.state;
    if (of !== "" && run && of !== `${run.run} ${JSON.stringify(run.log)}`) forget();
  });
}
