// Rules before and after the last change.
import { element } from "../element.ts";
import { plain, readable } from "../quantity.ts";
import { growth } from "../series.ts";
import type { Track, Tracks } from "./history.ts";
import { count, quantity, table } from "./table.ts";
import type { Page } from "./view.ts";

/** A table of rules: the seconds before the last change beside those after it, or all seconds if nothing has changed. */
export function beforeAndAfter(page: Page, rules: Tracks): HTMLElement[] {
  const { history } = page;
  const names = rules.names(false);
  if (names.length === 0) return [element("p", { class: "aside" }, "No rule has a flow yet.")];
  const change = history.moments.at(-1);
  const spans: [title: string, from: number, to: number][] = change
    ? [["before", Math.max(history.start, previous(page)), change.at - 1e-6], ["after", change.at, history.now]]
    : [["", history.start, history.now]];
  const titles = ["Flows", "RTT", "Rate", "Marked", "Sent again"].flatMap((title) => spans.map(([when]) => when === "" ? title : `${title} ${when}`));
  const rows = names.map((name) => {
    const track = rules.get(name)!;
    const columns = spans.map(([, from, to]) => figures(track, from, to));
    return [name, ...[0, 1, 2, 3, 4].flatMap((figure) => columns.map((column) => column[figure]!))];
  });
  const about = change
    ? `Means before and after the last change, ${readable(history.now - change.at, "seconds", 3)} ago: ${change.text}.`
    : "Means since this studio was started. When flows come under another rule, the time before that stands beside the time after it.";
  return [element("p", { class: "aside", id: "rule-note" }, about), table("Rules", ["Rule", ...titles], rows)];
}

/** The change before the last one: what was before that counts no more. */
function previous(page: Page): number {
  return page.history.moments.at(-2)?.at ?? page.history.start;
}

function figures(track: Track, from: number, to: number): string[] {
  const delivered = growth(track.time, track.get("delivered"), from, to);
  const part = (column: string): string => delivered > 0 ? `${plain((100 * growth(track.time, track.get(column), from, to)) / delivered, 3)} %` : "–";
  const flows = track.mean("flows", from, to);
  return [
    Number.isNaN(flows) ? "–" : count(Math.round(flows * 10) / 10), quantity(track.mean("rtt", from, to), "seconds", 3),
    quantity(track.mean("rate", from, to), "bits/s", 3), part("marked"), part("again"),
  ];
}
