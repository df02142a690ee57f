// What a controller tells: SED's flows with their deadlines and windows, and the stages of the policy on its way.
import { element } from "../element.ts";
import type { Line, PlotSpec } from "../plot.ts";
import { fleetPart, type Fleet } from "./fleet.ts";
import { count, quantity, table, type Cell } from "./table.ts";
import type { Kind, Page } from "./view.ts";

interface Flow {
  from: string;
  to: string;
  switch: string;
  port: number;
  size: number | null;
  acknowledged: number;
  left: number | null;
  window: number | null;
  slack: number | null;
}

interface Port {
  name: string;
  rate: number;
  congested: boolean;
  governed: boolean;
  flows: number;
}

interface Sed {
  name: string;
  term: number;
  up: number;
  all_flows: number;
  registrations: number;
  senders: number;
  switches: { name: string; attached: boolean; ports: Port[] }[];
  flows: Flow[];
}

interface Answer {
  sed: Sed;
  fleet: Fleet | null;
  fleet_problem: string | null;
}

const nameOf = (flow: Flow): string => `${flow.from} > ${flow.to}`;

export function controller(page: Page): Kind<Answer> {
  const { history } = page;
  const flows = page.tracks();
  const ports = page.tracks();
  const fleet = fleetPart(page);
  let last: Answer | null = null;

  const take = (answer: Answer): void => {
    last = answer;
    for (const flow of answer.sed.flows) {
      flows.add(nameOf(flow), {
        window: flow.window, slack: flow.slack, left: flow.left, acknowledged: flow.acknowledged,
        remaining: flow.size === null ? null : Math.max(flow.size - flow.acknowledged, 0),
      });
    }
    for (const { name, attached, ports: of } of answer.sed.switches) {
      history.watch(`switch ${name}`, String(attached), `the agent of ${name} is ${attached ? "connected" : "not connected"}`);
      for (const port of of) ports.add(`${name} ${port.name}`, { flows: port.flows });
    }
    history.watch("term", String(answer.sed.term), `the controller has term ${answer.sed.term}`);
    fleet.take(answer.fleet, answer.fleet_problem);
    page.chosen.rank(answer.sed.flows.map(nameOf));
  };

  const portLines = (): Line[] => ports.names(false).slice(0, 16).map((name, index): Line => {
    const track = ports.get(name)!;
    return { key: name, label: name, index, run: "a", time: track.time, values: track.get("flows"), counter: false };
  });
  const plots: PlotSpec[] = [
    page.plot("slack", "Slack of flows: time to spare at their window", "seconds", () => page.flowLines(flows, "slack")),
    page.plot("window", "Window of flows", "bytes", () => page.flowLines(flows, "window")),
    page.plot("left", "Time until the deadline", "seconds", () => page.flowLines(flows, "left")),
    page.plot("remaining", "Bytes to come", "bytes", () => page.flowLines(flows, "remaining")),
    page.plot("goodput", "Goodput of flows", "bits/s", () => page.flowLines(flows, "acknowledged", true, 8)),
    page.plot("ports", "Flows by port", "count", portLines),
  ];

  const flowTable = (): HTMLElement[] => {
    if (!last) return [];
    const { sed } = last;
    const words = page.search.toLowerCase();
    const found = sed.flows.filter((flow) => nameOf(flow).toLowerCase().includes(words));
    const rows = found.slice(0, 50).map((flow): Cell[] => [
      nameOf(flow), page.box(nameOf(flow)), `${flow.switch}:${flow.port}`, quantity(flow.size, "bytes"), quantity(flow.acknowledged, "bytes"),
      { text: quantity(flow.left, "seconds", 3), alarm: (flow.left ?? 0) < 0 }, flow.window === null ? "not limited" : quantity(flow.window, "bytes"),
      { text: quantity(flow.slack, "seconds", 3), alarm: (flow.slack ?? 0) < 0 },
    ]);
    return [
      element("p", { class: "aside", id: "flow-note" }, sed.all_flows === 0 ? "No flow is known." : `${Math.min(found.length, 50)} of ${count(sed.all_flows)} flows, the most urgent first; ${count(sed.registrations)} registered.`),
      ...(rows.length > 0 ? [table("Flows", ["Flow", "Plot", "At", "Size", "Acknowledged", "Left", "Window", "Slack"], rows)] : []),
    ];
  };

  const switchTable = (): HTMLElement[] => {
    const rows = (last?.sed.switches ?? []).flatMap(({ name, attached, ports: of }) => of.map((port): Cell[] => [
      `${name} ${port.name}`, { text: attached ? "connected" : "not connected", alarm: !attached }, quantity(port.rate, "bits/s"), count(port.flows),
      port.congested ? "congested" : "", port.governed ? "windows in force" : "",
    ]));
    return rows.length === 0 ? [element("p", { class: "aside" }, "No switch has been attached.")] : [table("Ports", ["Port", "Agent", "Rate", "Flows", "State", "Windows"], rows)];
  };

  return {
    title: "Controller", take, plots,
    summary: () => !last ? "" : `${last.sed.name}, term ${last.sed.term}, up for ${quantity(last.sed.up, "seconds", 3)}: ${count(last.sed.all_flows)} flows, ${count(last.sed.senders)} senders of their own.`,
    parts: [
      { id: "fleet", title: "Policy", content: fleet.content },
      { id: "switches", title: "Ports", content: switchTable },
      { id: "flow-table", title: "Flows with deadlines", content: flowTable },
    ],
  };
}
