// The page of something that runs: an enforcer or a controller, asked each second.
import { Board } from "../board.ts";
import * as client from "../client.ts";
import { byId, element, setText } from "../element.ts";
import { tellLasting } from "../message.ts";
import type { Level, Line, PlotSpec } from "../plot.ts";
import type { Observed, Unit } from "../protocol.ts";
import { Chosen } from "./chosen.ts";
import { controller } from "./controller.ts";
import { enforcer } from "./enforcer.ts";
import { History, Tracks } from "./history.ts";
import { renew } from "./table.ts";

/** A part of the page, filled anew with each answer. */
export interface Part {
  id: string;
  title: string;
  content(): HTMLElement[];
}

/** What is shown of a kind of program. */
export interface Kind<Answer> {
  title: string;
  /** Takes an answer into the history. */
  take(answer: Answer): void;
  /** One line about the last answer. */
  summary(): string;
  plots: PlotSpec[];
  parts: Part[];
}

/** What the kinds share. */
export class Page {
  readonly history: History;
  readonly chosen = new Chosen();
  search = "";

  constructor(stem: string) {
    this.history = new History(stem);
  }

  tracks(): Tracks {
    return new Tracks(this.history);
  }

  /** A plot over time. */
  plot(id: string, title: string, unit: Unit, lines: () => Line[], more: Partial<PlotSpec> = {}): PlotSpec {
    return { id, title, unit, per: "", lines, levels: (): Level[] => [], moments: () => this.history.moments, empty: null, ...more };
  }

  /** The lines of chosen flows. */
  flowLines(flows: Tracks, column: string, counter = false, factor = 1): Line[] {
    return this.chosen.names.flatMap((name, index): Line[] => {
      const track = flows.get(name);
      const values = track?.get(column);
      return !track || !values || values.isEmpty ? [] : [{ key: name, label: name, index, run: "a", time: track.time, values, counter, factor }];
    });
  }

  /** A box that chooses a flow for the plots. */
  box(flow: string): HTMLElement {
    const box = element("input", { type: "checkbox", "aria-label": `Plot ${flow}`, change: () => { this.chosen.toggle(flow); this.history.changed(); } });
    box.checked = this.chosen.has(flow);
    box.disabled = !box.checked && this.chosen.isFull;
    return box;
  }
}

export function observe(about: Observed): void {
  const page = new Page(about.kind);
  const kind = about.kind === "enforcer" ? enforcer(page) : controller(page);
  document.title = `${kind.title} – Weir Studio`;
  document.body.classList.add("inert", "observed");
  setText(byId("title"), kind.title);
  setText(byId("source"), about.name);
  const plots = element("div", { id: "plots" });
  const board = new Board(page.history);
  const whole = element("button", { type: "button", class: "small", id: "zoom-out", disabled: true, click: () => board.zoom(null) }, "Show all");
  board.onRange(() => { whole.disabled = !board.isZoomed; });
  const search = element("input", { type: "search", id: "flow-search", placeholder: "Search the flows", "aria-label": "Search the flows", input: () => { page.search = search.value; page.history.changed(); } });
  const places = kind.parts.map((part) => ({ part, host: element("div", { id: part.id }) }));
  document.querySelector("main")!.replaceChildren(element("div", { class: "views" },
    ...places.map(({ part, host }) => element("section", { "aria-labelledby": `${part.id}-title` },
      element("h2", { id: `${part.id}-title` }, part.title), ...(part.id === "flow-table" ? [search] : []), host)),
    element("section", { "aria-labelledby": "plots-title" },
      element("div", { class: "heading" }, element("h2", { id: "plots-title" }, "Plots"), whole,
        element("button", { type: "button", class: "small", click: () => { page.chosen.release(); page.history.changed(); } }, "The first flows")),
      element("p", { class: "aside" }, "Over the seconds since this studio was started, the last ten minutes. A tick at a flow adds its lines. Drag to zoom, double-click for all."),
      plots)));
  for (const spec of kind.plots) board.add(plots, spec);
  page.history.onChange(() => {
    const { problem, answers } = page.history;
    byId("status").classList.toggle("failed", problem !== null);
    setText(byId("status"), answers === 0 ? "Asking" : problem === null ? "Answers every second" : `Does not answer: ${problem}`);
    if (answers === 0) return;
    setText(byId("kind"), kind.summary());
    for (const { part, host } of places) {
      const content = part.content();
      host.closest("section")!.hidden = content.length === 0;
      renew(host, ...content);
    }
  });
  client.observe({
    begin: () => tellLasting(null),
    status: ({ at, answer, problem }) => {
      // A connection that is there again tells everything anew.
      if (at <= page.history.now && page.history.answers > 0) return;
      page.history.problem = problem ?? null;
      page.history.begin(at);
      if (answer !== undefined) kind.take(answer as never);
      schedule();
    },
    lost: (text) => tellLasting(text),
  });
  // Many answers come at once when the page opens.
  let waiting = false;
  function schedule(): void {
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; page.history.changed(); }, 50);
  }
  page.history.changed();
  document.body.classList.add("ready");
}
