// The studio's plots: queues, marks and drops of the chosen ports, goodput and windows of groups.
import type { Board } from "./board.ts";
import type { Model, Run } from "./model.ts";
import type { Level, Line, Moment, PlotSpec } from "./plot.ts";
import type { Unit } from "./protocol.ts";
import type { Selection } from "./selection.ts";
import type { GroupColumns, PortColumns } from "./series.ts";
import { thresholdsOf } from "./thresholds.ts";

export function addPlots(model: Model, board: Board, ports: Selection, groups: Selection, host: HTMLElement): void {
  const moments = (): Moment[] => model.all.flatMap((run) => run.state.log.map(({ at, text }) => ({ at, text })));
  const label = (name: string, run: Run): string => model.runs.size > 1 ? `${name} (${run.state.run})` : name;

  const portLines = (column: keyof PortColumns, counter: boolean) => (): Line[] =>
    ports.chosen.flatMap((port, index) => model.all.map((run): Line => ({
      key: `${port} ${run.state.run}`,
      label: label(model.scenario.ports[port]!.name, run),
      index, run: run.state.run, time: run.series.time, values: run.series.ports[port]![column], counter,
    })));
  const groupLines = (column: keyof GroupColumns, counter: boolean) => (): Line[] =>
    groups.chosen.flatMap((group, index) => model.all.map((run): Line => ({
      key: `${group} ${run.state.run}`,
      label: label(model.scenario.groups[group]!.name, run),
      index, run: run.state.run, time: run.series.time, values: run.series.groups[group]![column], counter,
    })));
  const levels = (): Level[] => ports.chosen.flatMap((port) => model.all.flatMap((run) =>
    thresholdsOf(model, run.state, port).map(({ label: name, bytes, from, until }): Level => ({
      label: name, run: run.state.run, value: bytes, from: from ?? 0, until: until ?? Infinity,
    }))));
  const none = (): Level[] => [];

  const spec = (id: string, title: string, unit: Unit, per: string, lines: () => Line[], of: () => Level[]): PlotSpec => ({
    id, title, unit, per, lines, levels: of, moments,
    empty: id === "goodput" || id === "window" ? "No group is chosen." : "No port is chosen.",
  });
  board.add(host, spec("queue", "Queue of ports", "bytes", "", portLines("queue", false), levels));
  board.add(host, spec("goodput", "Goodput by group", "bits/s", "", groupLines("goodput", false), none));
  board.add(host, spec("window", "Congestion window by group", "bytes", "", groupLines("window", false), none));
  board.add(host, spec("marks", "Marks of ports", "count", "/s", portLines("marks", true), none));
  board.add(host, spec("drops", "Drops of ports", "count", "/s", portLines("drops", true), none));
}
