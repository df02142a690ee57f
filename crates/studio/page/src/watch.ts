// The flows whose own lines the plots show: chosen in the table of flows, and listed beside the plots.
import * as client from "./client.ts";
import { element, setText } from "./element.ts";
import { tell } from "./message.ts";
import type { Model } from "./model.ts";

/** As many as the server takes. */
export const MOST_WATCHED = 16;
/** How many a click on "the slowest" chooses. */
const SLOWEST = 5;

export class Watch {
  constructor(private readonly model: Model) {}

  has(flow: string): boolean {
    return this.model.watched.includes(flow);
  }

  get isFull(): boolean {
    return this.model.watched.length >= MOST_WATCHED;
  }

  toggle(flow: string): Promise<void> {
    const watched = this.model.watched;
    return this.set(this.has(flow) ? watched.filter((other) => other !== flow) : [...watched, flow]);
  }

  /** Both runs show the same flows. */
  set(flows: string[]): Promise<void> {
    const asked = this.model.all.map((run) => client.watch(run.state.run, flows));
    return Promise.all(asked).then(() => tell(null), tell);
  }

  /** Chooses the slowest flows that are open. */
  async slowest(): Promise<void> {
    const run = this.model.run;
    if (!run) return;
    try {
      const { flows } = await client.flows(run.state.run, "", SLOWEST);
      await this.set(flows.map(({ name }) => name));
    } catch (error) {
      tell(error);
    }
  }
}

/** The list beside the choosers of ports and groups. `show` opens the packets of a flow, where there are some. */
export function watchList(model: Model, watch: Watch, show?: (flow: string) => void): HTMLElement {
  const list = element("ul", { class: "chooser watched" });
  const note = element("span");
  const none = element("button", { type: "button", class: "small", click: () => void watch.set([]) }, "None");
  const slowest = element("button", { type: "button", class: "small", click: () => void watch.slowest() }, "The slowest");
  let shown = "";
  model.onChange(() => {
    const names = model.watched;
    none.disabled = names.length === 0;
    setText(note, names.length === 0 ? "No single flow is shown: choose some in the table of flows, or"
      : `${names.length} flows shown, at most ${MOST_WATCHED}.`);
    if (names.join("\n") === shown) return;
    shown = names.join("\n");
    list.replaceChildren(...names.map((name) => element("li", {}, name, " ",
      ...(show ? [element("button", { type: "button", class: "small", "aria-label": `Packets of ${name}`, click: () => show(name) }, "packets"), " "] : []),
      element("button", { type: "button", class: "small", "aria-label": `Do not show ${name}`, click: () => void watch.toggle(name) }, "×"))));
  });
  return element("details", { class: "section", id: "watched" },
    element("summary", {}, "Flows in the plots"), element("p", { class: "aside" }, note, " ", slowest, " ", none), list);
}
