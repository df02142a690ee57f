// Draws the figures of a report: the data is in the page, and nothing is loaded.
import "uplot/dist/uPlot.min.css";
import "./report.css";
import type { Board } from "../board.ts";
import { chooser } from "../chooser.ts";
import { element } from "../element.ts";
import type { ZoomReport } from "../zoom-times.ts";
import type { Entries, ReportData, SectionData } from "./data.ts";
import { Figures } from "./figures.ts";
import { filterTables } from "./tables.ts";

declare global {
  interface Window {
    /** Times of the last zoom and pan steps of plots over time, in milliseconds. */
    weirZoomTimes(): ZoomReport;
  }
}

const HINT = "Drag to zoom, double-click for all. Shift-drag or a sideways wheel pans, the wheel with Ctrl zooms; " +
  "keys: + − 0, Shift and arrows. The entries of a legend hide and show their lines.";
/** So many sections are open at first: each has plots to draw. */
const OPEN = 2;

function draw(report: ReportData, host: HTMLElement): void {
  const figures = new Figures(report, stem(document.title));
  const whole = element("button", { type: "button", class: "small", id: "zoom-out", disabled: true, click: () => {
    for (const board of figures.boards) if (board.isZoomed) board.zoom(null);
  } }, "Show all");
  for (const board of figures.boards) board.onRange(() => { whole.disabled = !figures.boards.some(({ isZoomed }) => isZoomed); });
  const choosers = element("div", { class: "choosers" });
  // One line needs no choice.
  if (report.ports.names.length > 1) choosers.append(chooser(figures.selections.ports, "ports", "the largest mean queue first", "bytes"));
  if (report.groups.names.length > 1) choosers.append(chooser(figures.selections.groups, "groups", "the least mean goodput first", "bits/s"));
  if (report.flows.names.length > 1) choosers.append(chooser(figures.selections.flows, "flows", "the least mean goodput first", "bits/s"));
  host.append(element("p", { class: "aside" }, whole, " ", HINT), choosers,
    ...leftOut(report.ports, "ports"), ...leftOut(report.groups, "groups"));
  report.sections.forEach((section, place) => addSection(figures, section, place, report.sections.length > 1, host));
  listenToKeys(figures.boards);
  window.weirZoomTimes = () => figures.boards[0]!.times.report();
}

function leftOut({ names, leftOut: count }: Entries, plural: string): HTMLElement[] {
  return count === 0 ? [] : [element("p", { class: "aside" },
    `The plots have the ${names.length - count} worst of ${names.length} ${plural}, so that the page stays small; samples.parquet has all.`)];
}

function addSection(figures: Figures, section: SectionData, place: number, hasSeveral: boolean, host: HTMLElement): void {
  const grid = element("div", { class: "figures" });
  if (!hasSeveral) {
    host.append(grid);
    figures.add(section, grid);
    return;
  }
  const note = section.note === "" ? "" : element("p", { class: "settings" }, section.note);
  const box = element("details", { class: "section" }, element("summary", {}, element("h3", {}, section.title)), note, grid);
  host.append(box);
  let isDrawn = false;
  const open = (): void => {
    if (isDrawn) return;
    isDrawn = true;
    figures.add(section, grid);
  };
  box.addEventListener("toggle", () => { if (box.open) open(); });
  box.open = place < OPEN;
}

// The keys act on the plots that were last under the pointer.
function listenToKeys(boards: Board[]): void {
  let board = boards[0];
  document.addEventListener("pointerover", (event) => {
    if (!(event.target instanceof Element)) return;
    const canvas = event.target.closest(".plot")?.querySelector("canvas");
    board = boards.find(({ plots }) => canvas && plots.some((plot) => plot.canvas === canvas)) ?? board;
  });
  document.addEventListener("keydown", (event) => {
    if (!board || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.closest("input, select, textarea")) return;
    const at = board;
    const keys: Record<string, (() => void) | undefined> = {
      "+": () => at.scale(0.5),
      "-": () => at.scale(2),
      "0": () => at.zoom(null),
      ArrowRight: event.shiftKey ? () => at.pan(0.1) : undefined,
      ArrowLeft: event.shiftKey ? () => at.pan(-0.1) : undefined,
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/** A title as the beginning of a file's name. */
function stem(title: string): string {
  return title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "report";
}

const data = document.getElementById("figures-data");
const host = document.getElementById("figures");
if (data && host) draw(JSON.parse(data.textContent!) as ReportData, host);
filterTables();
document.body.classList.add("ready");
