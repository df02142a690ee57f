// Tables that are filled anew with each answer.
import { element } from "../element.ts";
import type { Unit } from "../protocol.ts";
import { readable } from "../quantity.ts";

export type Cell = string | HTMLElement | { text: string; alarm: boolean };

/** Rows whose first cells are names. */
export function table(label: string, titles: string[], rows: Cell[][], names = 1): HTMLElement {
  return element("div", { class: "wide tall", tabindex: 0, role: "region", "aria-label": label }, element("table", {},
    element("thead", {}, element("tr", {}, ...titles.map((title, index) => element("th", { scope: "col", class: index < names ? "name" : undefined }, title)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, index) => {
      const isAlarm = typeof cell === "object" && "alarm" in cell && cell.alarm;
      const content = typeof cell === "object" && "alarm" in cell ? cell.text : cell;
      return index === 0 ? element("th", { scope: "row", class: "name" }, content)
        : element("td", { class: [index < names ? "name" : "", isAlarm ? "alarm" : ""].join(" ").trim() || undefined }, content);
    }))))));
}

export function quantity(value: number | null | undefined, unit: Unit, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value < 0 ? `−${readable(-value, unit, digits)}` : readable(value, unit, digits);
}

export const count = (value: number | null | undefined): string => value === null || value === undefined ? "–" : value.toLocaleString("en");

/** Puts new content into a place; what had the focus has it again, if it is there, and what was scrolled stays so. */
export function renew(host: HTMLElement, ...content: HTMLElement[]): void {
  const focused = host.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
  const scrolled = [...host.querySelectorAll(".wide")].map((box) => [box.getAttribute("aria-label"), box.scrollLeft, box.scrollTop] as const);
  host.replaceChildren(...content);
  for (const [label, left, top] of scrolled) {
    if (left !== 0 || top !== 0) host.querySelector(`.wide[aria-label="${CSS.escape(label ?? "")}"]`)?.scrollTo(left, top);
  }
  if (focused) host.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}
