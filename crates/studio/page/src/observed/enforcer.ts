// What an enforcer tells: its flows and rules, and how rules that are tried do.
import { element } from "../element.ts";
import type { Line, PlotSpec } from "../plot.ts";
import { canaryParts, type Canary } from "./canary.ts";
import { beforeAndAfter } from "./change.ts";
import { count, quantity, table, type Cell } from "./table.ts";
import type { Kind, Page } from "./view.ts";

interface Flow {
  from: string;
  to: string;
  congestion: string;
  rule: number;
  rtt_us: number;
  window: number;
  enforced: number;
  pacing_rate: number | null;
  max_rate: number | null;
  measured_rate: number | null;
  in_flight: number;
  delivered: number;
  marked: number;
  sent_again: number;
  masked: number;
}

interface Totals {
  controlled: number;
  passed: number;
  refused: number;
  lowered: number;
  delivered: number;
  marked: number;
  sent_again: number;
}

interface SocketRule {
  line: number;
  algorithm: string;
  is_current: boolean;
  flows: number;
  control_flows: number;
  matched: number;
  applied: number;
  without_ecn: number;
  overridden: number;
  undone: number;
  refused: Record<string, number>;
}

interface Answer {
  interfaces: string[];
  totals: Totals;
  flows: Flow[];
  all_flows: number;
  sockets?: { cgroup: string; is_dry_run: boolean; rules: SocketRule[]; canaries?: Canary[] };
}

const nameOf = (flow: Flow): string => `${flow.from} > ${flow.to}`;
const ruleOf = ({ rule, congestion }: { rule: number; congestion: string }): string => `rule at line ${rule}: ${congestion}`;

export function enforcer(page: Page): Kind<Answer> {
  const { history } = page;
  const flows = page.tracks();
  const rules = page.tracks();
  const totals = page.tracks();
  const sums = new Map<string, { delivered: number; marked: number; again: number }>();
  let last: Answer | null = null;
  let inUse = new Set<string>();

  // The flows of each rule together, in place of flows that come and go.
  const takeRules = (answer: Answer): void => {
    const groups = new Map<string, Flow[]>();
    for (const flow of answer.flows) groups.set(ruleOf(flow), [...(groups.get(ruleOf(flow)) ?? []), flow]);
    for (const [name, members] of groups) {
      const sum = sums.get(name) ?? { delivered: 0, marked: 0, again: 0 };
      sums.set(name, sum);
      for (const flow of members) {
        const known = flows.get(nameOf(flow));
        const grown = (column: string, value: number): number => known ? Math.max(value - (known.last(column) || 0), 0) : 0;
        sum.delivered += grown("delivered", flow.delivered);
        sum.marked += grown("marked", flow.marked);
        sum.again += grown("again", flow.sent_again + flow.masked);
      }
      const rates = members.map((flow) => flow.measured_rate ?? 0);
      const rtts = members.filter(({ rtt_us }) => rtt_us > 0);
      rules.add(name, {
        flows: members.length, rtt: rtts.reduce((all, { rtt_us }) => all + rtt_us / 1e6, 0) / rtts.length,
        rate: rates.reduce((all, rate) => all + rate, 0), ...sum,
      });
    }
    // Flows of a former rule go on until they close: what counts is that others begin.
    for (const name of groups.keys()) {
      if (!inUse.has(name) && history.answers > 1) history.moments.push({ at: history.now, text: `flows come under the ${name}` });
    }
    inUse = new Set(groups.keys());
  };

  const take = (answer: Answer): void => {
    last = answer;
    takeRules(answer);
    for (const flow of answer.flows) {
      flows.add(nameOf(flow), {
        rtt: flow.rtt_us > 0 ? flow.rtt_us / 1e6 : null, window: flow.window, enforced: flow.enforced, rate: flow.measured_rate, limit: flow.max_rate,
        delivered: flow.delivered, marked: flow.marked, again: flow.sent_again + flow.masked,
      });
    }
    totals.add("all", { ...answer.totals });
    for (const rule of answer.sockets?.rules ?? []) {
      const name = `rule at line ${rule.line}: ${rule.algorithm}`;
      rules.add(name, { flows: rule.flows, left: rule.control_flows, matched: rule.matched, applied: rule.applied });
      history.watch(name, String(rule.is_current), `${name} is ${rule.is_current ? "in force" : "not in force any more"}`);
    }
    canaries.take(answer.sockets?.canaries ?? []);
    page.chosen.rank([...answer.flows].sort((a, b) => (b.measured_rate ?? 0) - (a.measured_rate ?? 0)).map(nameOf));
  };

  const canaries = canaryParts(page);
  const ruleLines = (column: string, counter = false, factor = 1): Line[] => rules.names(false).slice(0, 16).flatMap((name, index): Line[] => {
    const track = rules.get(name)!;
    const values = track.get(column);
    return values.isEmpty ? [] : [{ key: name, label: name, index, run: "a", time: track.time, values, counter, factor }];
  });
  const totalLine = (column: string, label: string, index: number, factor = 1): Line[] => {
    const track = totals.get("all");
    return !track ? [] : [{ key: column, label, index, run: "a", time: track.time, values: track.get(column), counter: true, factor }];
  };
  // The window that the controller wants is solid, what the sender is told is dashed.
  const windows = (): Line[] => [
    ...page.flowLines(flows, "window").map((line): Line => ({ ...line, key: `${line.key} wanted`, label: `${line.label}, wanted` })),
    ...page.flowLines(flows, "enforced").map((line): Line => ({ ...line, key: `${line.key} announced`, label: `${line.label}, announced`, run: "b" })),
  ];
  const rates = (): Line[] => [
    ...page.flowLines(flows, "rate").map((line): Line => ({ ...line, key: `${line.key} measured`, label: `${line.label}, measured` })),
    ...page.flowLines(flows, "limit").map((line): Line => ({ ...line, key: `${line.key} limit`, label: `${line.label}, limit`, run: "b" })),
  ];
  const plots: PlotSpec[] = [
    page.plot("rate", "Rate of flows, and their rule's limit", "bits/s", rates),
    page.plot("rtt", "Round-trip time of flows", "seconds", () => page.flowLines(flows, "rtt")),
    page.plot("window", "Window of flows: wanted, and announced to the sender", "bytes", windows),
    page.plot("marked", "Marked bytes of flows", "bytes", () => page.flowLines(flows, "marked", true), { per: "/s" }),
    page.plot("again", "Bytes of flows sent again", "bytes", () => page.flowLines(flows, "again", true), { per: "/s" }),
    page.plot("rule-flows", "Flows by rule", "count", () => ruleLines("flows")),
    page.plot("rule-rate", "Rate by rule", "bits/s", () => ruleLines("rate")),
    page.plot("rule-rtt", "Mean round-trip time by rule", "seconds", () => ruleLines("rtt")),
    page.plot("rule-applied", "Connections that got what their rule says", "count", () => ruleLines("applied", true), { per: "/s" }),
    page.plot("delivered", "Delivered by all controlled flows", "bits/s", () => last?.sockets ? [] : totalLine("delivered", "delivered", 0, 8)),
    page.plot("lowered", "Windows lowered", "count", () => last?.sockets ? [] : totalLine("lowered", "lowered", 0), { per: "/s" }),
    ...canaries.plots,
  ];

  const flowTable = (): HTMLElement[] => {
    if (!last || last.sockets) return [];
    const { flows: all } = last;
    const words = page.search.toLowerCase();
    const found = all.filter((flow) => nameOf(flow).toLowerCase().includes(words));
    const rows = found.slice(0, 50).map((flow): Cell[] => [
      nameOf(flow), page.box(nameOf(flow)), `${flow.rule}`, flow.congestion, quantity(flow.rtt_us / 1e6, "seconds"), quantity(flow.window, "bytes"), quantity(flow.enforced, "bytes"),
      quantity(flow.in_flight, "bytes"), quantity(flow.measured_rate, "bits/s"),
      { text: quantity(flow.max_rate, "bits/s"), alarm: (flow.measured_rate ?? 0) > 1.1 * (flow.max_rate ?? Infinity) },
      quantity(flow.delivered, "bytes"), quantity(flow.marked, "bytes"), quantity(flow.sent_again, "bytes"), quantity(flow.masked, "bytes"),
    ]);
    return [
      element("p", { class: "aside", id: "flow-note" }, last.all_flows === 0 ? "No flow is controlled." : `${Math.min(found.length, 50)} of ${count(last.all_flows)} controlled flows, those with the most bytes first.`),
      ...(rows.length > 0 ? [table("Flows", ["Flow", "Plot", "Rule", "By", "RTT", "Window", "Announced", "In flight", "Measured", "Limit", "Delivered", "Marked", "Sent again", "Masked"], rows)] : []),
    ];
  };

  const ruleTable = (): HTMLElement[] => {
    if (last?.sockets) return [socketTable(last.sockets.rules)];
    return beforeAndAfter(page, rules);
  };

  const summary = (): string => {
    if (!last) return "";
    if (last.sockets) return `At the sockets of ${last.sockets.cgroup}${last.sockets.is_dry_run ? ", a dry run: nothing is changed" : ""}.`;
    const { controlled, passed, refused, lowered } = last.totals;
    return `${last.interfaces.join(", ")}: ${count(controlled)} flows controlled, ${count(passed)} passed, ${count(refused)} without room, ${count(lowered)} windows lowered.`;
  };

  return {
    title: "Enforcer", take, summary, plots,
    parts: [
      { id: "rules", title: "Rules", content: ruleTable },
      ...canaries.parts.map((part) => ({ ...part, content: () => last?.sockets ? part.content() : [] })),
      { id: "flow-table", title: "Flows", content: flowTable },
    ],
  };
}

function socketTable(rules: SocketRule[]): HTMLElement {
  if (rules.length === 0) return element("p", { class: "aside" }, "No rule is in force.");
  return table("Rules", ["Line", "By", "In force", "Flows", "Left alone", "Matched", "Applied", "No ECN", "Refused", "Overridden", "Undone"], rules.map((rule) => {
    const refused = Object.values(rule.refused).reduce((all, count) => all + count, 0);
    return [
      `${rule.line}`, rule.algorithm, rule.is_current ? "yes" : "no", count(rule.flows), count(rule.control_flows), count(rule.matched), count(rule.applied),
      count(rule.without_ecn), { text: count(refused), alarm: refused > 0 }, count(rule.overridden), { text: count(rule.undone), alarm: rule.undone > 0 },
    ];
  }));
}
