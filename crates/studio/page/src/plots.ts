// The studio's plots: queues, marks and drops of the chosen ports; goodput, windows, round-trip times, α and fairness of
// groups; and the same of watched flows.
import type { Board } from "./board.ts";
import type { Model, Run } from "./model.ts";
import type { Level, Line, Moment, PlotSpec } from "./plot.ts";
import type { Unit } from "./protocol.ts";
import type { FlowProbe, GroupProbe } from "./probes.ts";
import type { Selection } from "./selection.ts";
import type { GroupColumns, PortColumns } from "./series.ts";
import { thresholdsOf } from "./thresholds.ts";

/** What plots that stay without lines say; the others are hidden. */
const EMPTY: Record<string, string> = {
  queue: "No port is chosen.", goodput: "No group is chosen.", window: "No group is chosen.",
  marks: "No port is chosen.", drops: "No port is chosen.",
};

export function addPlots(model: Model, board: Board, ports: Selection, groups: Selection, host: HTMLElement): void {
  const moments = (): Moment[] => model.all.flatMap((run) => run.state.log.map(({ at, text }) => ({ at, text })));
  const label = (name: string, run: Run): string => model.runs.size > 1 ? `${name} (${run.state.run})` : name;

  const portLines = (column: keyof PortColumns, counter: boolean) => (): Line[] =>
    ports.chosen.flatMap((port, index) => model.all.map((run): Line => ({
      key: `${port} ${run.state.run}`,
      label: label(model.scenario.ports[port]!.name, run),
      index, run: run.state.run, time: run.series.portTime, values: run.series.ports[port]![column], counter,
    })));
  const groupLines = (column: keyof GroupColumns, counter: boolean, factor = 1) => (): Line[] =>
    groups.chosen.flatMap((group, index) => model.all.map((run): Line => ({
      key: `${group} ${run.state.run}`,
      label: label(model.scenario.groups[group]!.name, run),
      index, run: run.state.run, time: run.series.groupTime, values: run.series.groups[group]![column], counter, factor,
    })));
  const goodputLines = (): Line[] => groupLines("delivered", true, 8)().map((line, place) => {
    const runs = model.all;
    return { ...line, values: runs[place % runs.length]!.series.delivered(groups.chosen[Math.floor(place / runs.length)]!) };
  });
  const levels = (): Level[] => ports.chosen.flatMap((port) => model.all.flatMap((run) =>
    thresholdsOf(model, run.state, port).map(({ label: name, bytes, from, until }): Level => ({
      label: name, run: run.state.run, value: bytes, from: from ?? 0, until: until ?? Infinity,
    }))));
  const none = (): Level[] => [];

  // Means of what a group's flows have seen, of those groups that have it.
  const probeLines = (column: GroupProbe) => (): Line[] =>
    groups.chosen.flatMap((group, index) => model.all.flatMap((run): Line[] => {
      const values = run.probes.groups[group]![column];
      return values.isEmpty ? [] : [{
        key: `${group} ${run.state.run}`,
        label: label(model.scenario.groups[group]!.name, run),
        index, run: run.state.run, time: run.probes.time, values, counter: false,
      }];
    }));
  const fairnessLines = (): Line[] => [...probeLines("fairness")(), ...model.all.flatMap((run): Line[] =>
    run.probes.fairness.isEmpty || model.scenario.groups.length < 2 ? [] : [{
      key: `all ${run.state.run}`, label: label("all flows", run), index: groups.chosen.length,
      run: run.state.run, time: run.probes.time, values: run.probes.fairness, counter: false,
    }])];
  const flowLines = (column: FlowProbe, counter: boolean, factor = 1) => (): Line[] =>
    model.watched.flatMap((name, index) => model.all.flatMap((run): Line[] => {
      const flow = run.probes.names.indexOf(name);
      const values = column === "delivered" ? run.probes.delivered(flow) : run.probes.flows[flow]?.[column];
      return values === undefined || values.isEmpty ? [] : [{
        key: `${name} ${run.state.run}`, label: label(name, run), index, run: run.state.run,
        time: run.probes.time, values, counter, factor,
      }];
    }));
  const spec = (id: string, title: string, unit: Unit, per: string, lines: () => Line[], of: () => Level[] = none): PlotSpec => ({
    id, title, unit, per, lines, levels: of, moments, empty: EMPTY[id] ?? null,
  });
  board.add(host, spec("queue", "Queue of ports", "bytes", "", portLines("queue", false), levels));
  board.add(host, spec("goodput", "Goodput by group", "bits/s", "", goodputLines));
  board.add(host, spec("window", "Congestion window by group", "bytes", "", groupLines("window", false)));
  board.add(host, spec("rtt", "Round-trip time by group", "seconds", "", probeLines("rtt")));
  board.add(host, spec("alpha", "Marked fraction α by group", "ratio", "", probeLines("alpha")));
  board.add(host, spec("fairness", "Fairness among flows (Jain)", "ratio", "", fairnessLines));
  board.add(host, spec("marks", "Marks of ports", "count", "/s", portLines("marks", true)));
  board.add(host, spec("drops", "Drops of ports", "count", "/s", portLines("drops", true)));
  board.add(host, spec("flow-goodput", "Goodput of flows", "bits/s", "", flowLines("delivered", true, 8)));
  board.add(host, spec("flow-window", "Congestion window of flows", "bytes", "", flowLines("window", false)));
  board.add(host, spec("flow-rtt", "Round-trip time of flows", "seconds", "", flowLines("rtt", false)));
  board.add(host, spec("flow-alpha", "Marked fraction α of flows", "ratio", "", flowLines("alpha", false)));
  board.add(host, spec("flow-marks", "Marks of flows", "count", "/s", flowLines("marks", true)));
  board.add(host, spec("flow-retransmitted", "Retransmissions of flows", "bytes", "/s", flowLines("retransmitted", true)));
}
