// A sample of a line for a legend: its colour, dashes and marker.
import { drawn } from "./element.ts";
import { COLOURS, lineDash, markerShape, type Styled } from "./palette.ts";

const WIDTH = 30;
const HEIGHT = 10;

/** A drawing of the line's look, which follows the page's colours. */
export function swatch(line: Styled, hasTwoRuns: boolean): SVGSVGElement {
  const middle = HEIGHT / 2;
  const dash = lineDash(line, hasTwoRuns);
  return drawn("svg", {
    class: `swatch s${line.index % COLOURS} run-${line.run}`, width: WIDTH, height: HEIGHT,
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true",
  },
  drawn("path", { d: `M0 ${middle}H${WIDTH}`, "stroke-width": 2, "stroke-dasharray": dash.length > 0 ? dash.join(" ") : undefined }),
  drawn("path", {
    d: markerShape(line), transform: `translate(${WIDTH / 2} ${middle}) scale(3.6)`, "stroke-width": 0.4,
    class: line.run === "a" ? "filled" : undefined,
  }));
}
