// A plot as an SVG drawing that needs no style sheet.
import { even, labels, marksBetween } from "./axis.ts";
import { bandOutline, valueAt } from "./overlay.ts";
import { colour, lineColour, lineDash, markerShape } from "./palette.ts";
import type { Line, Plot } from "./plot.ts";
import { plain } from "./quantity.ts";
import { logTicks, ticks } from "./ticks.ts";

const MARGIN = { left: 64, right: 16, top: 34, bottom: 34 };
const AREA = { width: 820, height: 260 };
/** Pixels between two markers on one line. */
const MARKER_PERIOD = 130;

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

type Points = (number | null | undefined)[];
type Place = (value: number) => number;

/** The plot as it is shown. */
export function svg(plot: Plot): string {
  const lines = plot.shown;
  const { axis, range: { from, to } } = plot.board;
  const [x, ...ys] = plot.sampled(lines, AREA.width);
  const values = ys.flatMap((y) => y.filter((value): value is number => value != null));
  const least = values.reduce((low, value) => Math.min(low, value), Infinity);
  const greatest = values.reduce((high, value) => Math.max(high, value), -Infinity);
  const [bottom, top] = plot.extremes(values.length > 0 ? least : null, values.length > 0 ? greatest : null);
  const { factor, name } = plot.scale(top);
  const px: Place = (value) => MARGIN.left + ((even(axis, value) - even(axis, from)) / (even(axis, to) - even(axis, from))) * AREA.width;
  const up = (value: number): number => plot.spec.logarithmic ? Math.log(value) : value;
  const py: Place = (value) => MARGIN.top + (1 - (up(value) - up(bottom)) / (up(top) - up(bottom))) * AREA.height;
  const height = MARGIN.top + AREA.height + MARGIN.bottom + 18 * lines.length;
  const width = MARGIN.left + AREA.width + MARGIN.right;
  const end = MARGIN.top + AREA.height;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="${colour("ground")}"/>`,
    `<text x="${MARGIN.left}" y="20" font-size="15" font-weight="600" fill="${colour("text")}">${escaped(name === "" ? plot.spec.title : `${plot.spec.title} (${name})`)}</text>`,
    `<clipPath id="area"><rect x="${MARGIN.left}" y="${MARGIN.top}" width="${AREA.width}" height="${AREA.height}"/></clipPath>`,
  ];
  for (const value of plot.spec.logarithmic ? logTicks(bottom, top, 6) : ticks(bottom, top, 5)) {
    const y = py(value).toFixed(1);
    parts.push(`<path d="M${MARGIN.left} ${y}h${AREA.width}" stroke="${colour("rule")}"/>`,
      `<text x="${MARGIN.left - 6}" y="${Number(y) + 4}" text-anchor="end" fill="${colour("quiet")}">${plain(value / factor)}</text>`);
  }
  const marks = marksBetween(axis, from, to, 8) ?? ticks(from, to, 8);
  labels(axis, marks).forEach((label, index) =>
    parts.push(`<text x="${px(marks[index]!).toFixed(1)}" y="${end + 18}" text-anchor="middle" fill="${colour("quiet")}">${escaped(label)}</text>`));
  for (const level of plot.spec.levels()) {
    const [start, until] = [Math.max(level.from, from), Math.min(level.until, to)];
    if (level.value > top || until <= start) continue;
    parts.push(`<path d="M${px(start).toFixed(1)} ${py(level.value).toFixed(1)}H${px(until).toFixed(1)}" stroke="${colour("level")}" stroke-dasharray="6 4"/>`);
  }
  for (const line of lines) {
    const band = bandOutline(line, px, py);
    if (band !== "") parts.push(`<path d="${band}" fill="${lineColour(line)}" opacity="0.2" clip-path="url(#area)"/>`);
  }
  lines.forEach((line, place) => parts.push(
    path(plot, line, x, ys[place]!, px, py),
    ...markers(plot, line, place, x, ys[place]!, px, py),
    legend(plot, line, end + MARGIN.bottom + 18 * place)));
  return [...parts, "</svg>", ""].join("\n");
}

function stroke(plot: Plot, line: Line): string {
  const dash = lineDash(line, plot.hasTwoRuns);
  return `stroke="${lineColour(line)}"${dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : ""}`;
}

function path(plot: Plot, line: Line, x: number[], y: Points, px: Place, py: Place): string {
  let data = "";
  let open = false;
  x.forEach((at, i) => {
    const value = y[i];
    if (value === null) open = false;
    if (value == null) return;
    data += `${open ? "L" : "M"}${px(at).toFixed(1)} ${py(value).toFixed(1)}`;
    open = true;
  });
  return `<path d="${data}" fill="none" stroke-width="1.5" clip-path="url(#area)" ${stroke(plot, line)}/>`;
}

function marker(line: Line, x: number, y: number): string {
  return `<path d="${markerShape(line)}" transform="translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(3.6)" fill="none" stroke="${lineColour(line)}" stroke-width="0.4"/>`;
}

function markers(plot: Plot, line: Line, place: number, x: number[], y: Points, px: Place, py: Place): string[] {
  const count = plot.shown.length;
  if (plot.spec.points) return x.flatMap((at, i) => y[i] == null ? [] : [marker(line, px(at), py(y[i]))]);
  if (count < 2) return [];
  const { axis, range: { from, to } } = plot.board;
  const found: string[] = [];
  const spacing = Math.max(MARKER_PERIOD / count, 14);
  for (let at = (place + 0.5) * spacing; at < AREA.width; at += count * spacing) {
    const part = at / AREA.width;
    const value = axis.logarithmic ? from * (to / from) ** part : from + part * (to - from);
    const height = valueAt(x, y, value);
    if (height !== null) found.push(marker(line, MARGIN.left + at, py(height)));
  }
  return found;
}

function legend(plot: Plot, line: Line, y: number): string {
  return `<path d="M${MARGIN.left} ${y}h30" stroke-width="2" ${stroke(plot, line)}/>${marker(line, MARGIN.left + 15, y)}` +
    `<text x="${MARGIN.left + 38}" y="${y + 4}" fill="${colour("text")}">${escaped(line.label)}</text>`;
}
