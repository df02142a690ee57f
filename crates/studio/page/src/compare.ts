// A table of what the runs did in the shown time: goodput, share, marks and losses of groups, queues
// and drops of ports, whose names open their packets.
import type { Board } from "./board.ts";
import { element } from "./element.ts";
import type { Model, Run } from "./model.ts";
import { plain, readable } from "./quantity.ts";
import type { Selection } from "./selection.ts";
import { growth, meanOverTime, meanRate } from "./series.ts";

export function compare(
  model: Model, board: Board, ports: Selection, groups: Selection, host: HTMLElement, show?: (port: string) => void,
): void {
  let last = 0;
  let later = 0;
  const refresh = (): void => {
    // The means are over all samples: twice a second is enough.
    clearTimeout(later);
    const wait = last + 500 - performance.now();
    if (wait > 0) {
      later = window.setTimeout(refresh, wait);
      return;
    }
    last = performance.now();
    host.replaceChildren(...tables(model, board, ports, groups, show));
  };
  board.onRange(refresh);
}

function tables(model: Model, board: Board, ports: Selection, groups: Selection, show?: (port: string) => void): HTMLElement[] {
  const { from, to } = board.range;
  const runs = model.all;
  if (runs.length === 0) return [];
  const count = (value: number): string => Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "–";
  // Shares are of all groups, shown or not.
  const goodput = runs.map((run) => model.scenario.groups.map((_, group) =>
    meanRate(run.series.groupTime, run.series.groups[group]!.delivered, from, to) || 0));
  const total = goodput.map((means) => means.reduce((sum, mean) => sum + mean, 0));
  const groupTable = table("Group", ["Goodput", "Share", "Marks", "Retransmitted", "Timeouts"], runs, groups.chosen.map((group) => ({
    name: model.scenario.groups[group]!.name,
    aside: model.scenario.groups[group]!.algorithm,
    cells: runs.map(({ series }, index) => [
      `${readable(goodput[index]![group]!, "bits/s", 4)}`,
      total[index]! > 0 ? `${plain((100 * goodput[index]![group]!) / total[index]!, 3)} %` : "–",
      count(growth(series.groupTime, series.groups[group]!.marks, from, to)),
      readable(growth(series.groupTime, series.groups[group]!.retransmitted, from, to), "bytes", 3),
      count(growth(series.groupTime, series.groups[group]!.timeouts, from, to)),
    ]),
  })));
  const portTable = table("Port", ["Mean queue", "Marks", "Drops", "Load"], runs, ports.chosen.map((port) => ({
    name: model.scenario.ports[port]!.name,
    aside: "",
    ...(show ? { show } : {}),
    cells: runs.map(({ series }) => {
      const columns = series.ports[port]!;
      const mean = meanOverTime(series.portTime, columns.queue, from, to);
      const load = meanRate(series.portTime, columns.sent, from, to) / model.scenario.ports[port]!.rate;
      return [
        Number.isNaN(mean) ? "–" : readable(mean, "bytes", 3),
        count(growth(series.portTime, columns.marks, from, to)),
        count(growth(series.portTime, columns.drops, from, to)),
        Number.isFinite(load) ? `${plain(100 * load, 3)} %` : "–",
      ];
    }),
  })));
  const about = `From ${readable(from, "seconds", 4)} to ${readable(to, "seconds", 4)}, as the plots show.`;
  return [element("p", { class: "aside" }, about), groupTable, portTable];
}

interface TableRow {
  name: string;
  aside: string;
  /** Opens what belongs to the row, at a click on its name. */
  show?: (name: string) => void;
  cells: string[][];
}

// With two runs each figure has a column for each.
function table(first: string, figures: string[], runs: Run[], rows: TableRow[]): HTMLElement {
  if (rows.length === 0) return element("div");
  const two = runs.length > 1;
  const head = element("tr", {}, element("th", { class: "name", scope: "col", rowspan: two ? 2 : 1 }, first),
    ...figures.map((figure) => element("th", { scope: two ? "colgroup" : "col", colspan: runs.length }, figure)));
  const second = two ? [element("tr", {}, ...figures.flatMap(() => runs.map((run) => element("th", { scope: "col" }, run.state.run))))] : [];
  return element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `${first}s compared` }, element("table", {},
    element("thead", {}, head, ...second),
    element("tbody", {}, ...rows.map((row) => element("tr", {},
      element("th", { class: "name", scope: "row" }, rowName(row), row.aside && row.aside !== row.name ? element("small", {}, ` ${row.aside}`) : ""),
      ...figures.flatMap((_, figure) => row.cells.map((cells) => element("td", {}, cells[figure]!))))))));
}

function rowName({ name, show }: TableRow): HTMLElement | string {
  return show ? element("button", { type: "button", class: "link", "aria-label": `Packets of ${name}`, click: () => show(name) }, name) : name;
}
