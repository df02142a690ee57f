// Starts the page: asks for the scenario, builds the views, and listens.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Board } from "./board.ts";
import { chooser } from "./chooser.ts";
import * as client from "./client.ts";
import { compare } from "./compare.ts";
import { controls } from "./controls.ts";
import { digest } from "./digest.ts";
import { byId, setText } from "./element.ts";
import { flows } from "./flows.ts";
import { knobs } from "./knobs.ts";
import { log } from "./log.ts";
import { reason, tellLasting } from "./message.ts";
import { Model } from "./model.ts";
import { Packets } from "./packets/view.ts";
import { addPlots } from "./plots.ts";
import { isObserved, type Scenario } from "./protocol.ts";
import { observe } from "./observed/view.ts";
import { runs } from "./runs.ts";
import { groupChoice, portChoice, Selection } from "./selection.ts";
import { Drawing, key } from "./topology/draw.ts";
import { Watch, watchList } from "./watch.ts";
import type { ZoomReport } from "./zoom-times.ts";

declare global {
  interface Window {
    /** Times of the last zoom and pan steps, in milliseconds. */
    weirZoomTimes(): ZoomReport;
  }
}

const REFUSED = "The studio refused this page's token. Open the address that `weir studio` printed when it started.";
const LOST = "The connection to the studio is lost. The page goes on by itself when it is back.";

function start(scenario: Scenario): void {
  document.title = `${scenario.title} – Weir Studio`;
  setText(byId("title"), scenario.title);
  const model = new Model(scenario);
  document.body.classList.toggle("inert", !model.isSimulated);
  document.body.classList.toggle("without-network", !model.hasNetwork);
  document.body.classList.toggle("without-flow-lines", !model.hasFlowLines);
  if (!model.isSimulated) {
    model.onChange(() => setText(byId("kind"), model.run?.state.status === "playing" ? "A live run, as it goes on." : `A finished ${scenario.live ? "live run" : "run"}, to look at.`));
  }
  setText(byId("source"), [model.stem, `seed ${scenario.seed}`, scenario.source].filter((part) => part !== "").join(" · "));
  const ports = new Selection(model, portChoice(model));
  const groups = new Selection(model, groupChoice(model));
  const board = new Board(model);
  controls(model, board);
  const packets = new Packets(model);
  const showFlow = model.isSimulated ? (flow: string): void => packets.show("flow", flow) : undefined;
  const watch = new Watch(model);
  const showPort = model.isSimulated ? (port: string): void => packets.show("port", port) : undefined;
  if (model.hasNetwork) {
    new Drawing(byId("topology"), model, ports, showPort);
    byId("network").append(key(showPort !== undefined));
  }
  byId("choosers").append(chooser(ports, "ports", "the largest mean queue first", "bytes"), chooser(groups, "groups", "the least mean goodput first", "bits/s"));
  addPlots(model, board, ports, groups, byId("plots"));
  byId("choosers").append(watchList(model, watch, showFlow));
  compare(model, board, ports, groups, byId("compare"), showPort);
  runs(model);
  knobs(model, byId("knobs"));
  log(model);
  digest(model);
  flows(model, watch, showFlow);
  const whole = byId<HTMLButtonElement>("zoom-out");
  whole.addEventListener("click", () => board.zoom(null));
  board.onRange(() => { whole.disabled = !board.isZoomed; });
  window.weirZoomTimes = () => board.times.report();
  client.listen({
    begin: () => { tellLasting(null); model.begin(); },
    state: (state) => model.setState(state),
    thresholds: ({ run, ports: known }) => { model.thresholds.set(run, known); model.changed(); },
    reset: (run, from) => {
      model.runs.get(run)?.series.truncate(from);
      model.runs.get(run)?.probes.truncate(from);
      model.changed();
    },
    watched: ({ run, flows: names }) => { model.runs.get(run)?.probes.watch(names); model.changed(); },
    probes: (probes) => { model.runs.get(probes.run)?.probes.append(probes); model.changed(); },
    samples: (samples) => { model.runs.get(samples.run)?.series.append(samples); model.changed(); },
    closed: (run) => model.close(run),
    lost: (refused) => tellLasting(refused ? REFUSED : LOST),
  });
  // The knobs stand below the header, however many lines it takes.
  const header = document.querySelector("header")!;
  new ResizeObserver(() => document.documentElement.style.setProperty("--head", `${header.offsetHeight}px`)).observe(header);
  document.body.classList.add("ready");
}

client.scenario().then((about) => isObserved(about) ? observe(about) : start(about), (error: unknown) => {
  const refused = error instanceof client.Refused && (error.status === 401 || error.status === 403);
  tellLasting(refused ? REFUSED : reason(error));
  setText(byId("title"), "Weir Studio");
});
