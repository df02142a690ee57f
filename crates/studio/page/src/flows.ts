// The flows of the chosen run, the slowest first, and their completion times. Asked for once a second
// while somebody looks.
import * as client from "./client.ts";
import { CompletionPlots } from "./completions.ts";
import { byId, element, setText } from "./element.ts";
import { reason } from "./message.ts";
import type { Model } from "./model.ts";
import type { Flow } from "./protocol.ts";
import { readable } from "./quantity.ts";
import type { Watch } from "./watch.ts";

const LISTED = 50;
const EVERY = 1000;

const COLUMNS: [title: string, cell: (flow: Flow) => string][] = [
  ["Flow", (flow) => flow.name],
  ["From", (flow) => flow.source],
  ["To", (flow) => flow.destination],
  ["Start", (flow) => quantity(flow.started, "seconds")],
  ["Delivered", (flow) => quantity(flow.delivered, "bytes")],
  ["Goodput", (flow) => quantity(flow.goodput, "bits/s")],
  ["Window", (flow) => quantity(flow.window, "bytes")],
  ["RTT", (flow) => quantity(flow.rtt, "seconds")],
  ["Marks", (flow) => flow.marks.toLocaleString("en")],
  ["Retransmitted", (flow) => quantity(flow.retransmitted, "bytes")],
  ["Timeouts", (flow) => flow.timeouts.toLocaleString("en")],
];

function quantity(value: number | null, unit: "seconds" | "bytes" | "bits/s"): string {
  return value === null || value === undefined ? "–" : readable(value, unit, 4);
}

/** `show` opens the packets of a flow, where there are some. */
export function flows(model: Model, watch: Watch, show?: (flow: string) => void): void {
  const box = byId<HTMLDetailsElement>("flows");
  const search = byId<HTMLInputElement>("flow-search");
  const rows = element("tbody");
  byId("flow-table").append(element("table", {},
    element("thead", {}, element("tr", {}, ...(!model.hasFlowLines ? [] : [element("th", { scope: "col" }, "Plot")]), ...COLUMNS.map(([title], index) =>
      element("th", { scope: "col", class: index < 3 ? "name" : undefined }, title)))), rows));
  const plots = new CompletionPlots(byId("completions"));
  let visible = false;
  let asking = false;
  let seen = "";

  const plotted = (flow: string): HTMLElement => {
    const box = element("input", {
      type: "checkbox", "aria-label": `Plot ${flow}`,
      change: () => void watch.toggle(flow),
    });
    box.checked = watch.has(flow);
    box.disabled = !box.checked && watch.isFull;
    return element("td", {}, box);
  };

  const ask = async (): Promise<void> => {
    const run = model.run;
    if (!run || !box.open || !visible || asking || document.hidden) return;
    // A run that stands still has no news.
    const what = `${run.state.run} ${run.series.version} ${run.state.now} ${search.value} ${model.watched.join()}`;
    if (what === seen) return;
    asking = true;
    try {
      const [listed, completed] = await Promise.all([
        client.flows(run.state.run, search.value, LISTED), client.completions(run.state.run),
      ]);
      seen = what;
      // A row that is replaced loses its focus.
      const focused = rows.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
      rows.replaceChildren(...listed.flows.map((flow) => element("tr", {}, ...(!model.hasFlowLines ? [] : [plotted(flow.name)]), ...COLUMNS.map(([, cell], index) =>
        index === 0 ? element("th", { scope: "row", class: "name" }, !show ? cell(flow)
          : element("button", { type: "button", class: "link", "aria-label": `Packets of ${flow.name}`, click: () => show(flow.name) }, cell(flow)))
          : element("td", { class: index < 3 ? "name" : undefined }, cell(flow))))));
      if (focused) rows.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
      const some = listed.flows.length < listed.total ? `the ${listed.flows.length} slowest of ` : "";
      const sampled = model.scenario.kind === "live" && run.state.status === "playing";
      setText(byId("flow-note"), `Run ${run.state.run}: ${some}${listed.total.toLocaleString("en")} ${model.isSimulated || sampled ? "open " : ""}flows${sampled ? " without a size" : ""}, the slowest first.`);
      plots.show(completed);
    } catch (error) {
      setText(byId("flow-note"), reason(error));
    } finally {
      asking = false;
    }
  };
  new IntersectionObserver((entries) => { visible = entries.some((entry) => entry.isIntersecting); void ask(); }).observe(box);
  box.addEventListener("toggle", () => void ask());
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => void ask(), 150);
  });
  setInterval(() => void ask(), EVERY);
}
