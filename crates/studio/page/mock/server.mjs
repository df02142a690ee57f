// A stand-in for the studio's server, for work on the page: the protocol with invented numbers.
//   node mock/server.mjs [--port 8091] [--topology dumbbell|star|leaf-spine] [--groups 2] [--samples 0]
// `--samples N` sends N invented samples at once: for measuring how long zooming takes.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { network } from "./network.mjs";
import { Run } from "./run.mjs";

const { values: options } = parseArgs({ options: {
  port: { type: "string", default: "8091" },
  topology: { type: "string", default: "dumbbell" },
  groups: { type: "string", default: "2" },
  samples: { type: "string", default: "0" },
} });
const dist = join(dirname(fileURLToPath(import.meta.url)), "..", "dist");
const scenario = network(options.topology, Number(options.groups));
const runs = new Map([["a", new Run("a", scenario)]]);
runs.get("a").jump(Number(options.samples));
const listeners = new Set();
const send = (response, event, data) => response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
const tell = (event, data) => { for (const response of listeners) send(response, event, data); };

// All of it after other flows are watched or the past has changed, and else what is new.
function tellProbes(run) {
  if (run.news || run.time.length < run.probed) {
    tell("watched", { run: run.name, flows: run.watched });
    run.probed = 0;
  }
  run.news = false;
  if (run.time.length > run.probed) tell("probes", run.probes(run.probed));
  run.probed = run.time.length;
}

setInterval(() => {
  for (const run of runs.values()) {
    const samples = run.advance(0.04);
    if (samples) tell("samples", samples);
    if (samples || run.touched) tell("state", run.state());
    if (run.touched) tell("thresholds", run.thresholds());
    tellProbes(run);
    run.touched = false;
  }
}, 40);

class Wrong extends Error {}

function post(path, body) {
  const run = runs.get(body.run ?? "a");
  if (!run) throw new Wrong(`there is no run ${body.run}`);
  switch (path) {
    case "/api/control": {
      const from = run.control(body);
      if (from !== null) { tell("reset", { run: run.name, from }); for (const part of run.parts()) tell("samples", part); }
      break;
    }
    case "/api/speed": run.speed = body.speed; break;
    case "/api/watch": run.watch(body.flows); break;
    case "/api/change": run.change(body, (message) => { throw new Wrong(message); }); break;
    case "/api/undo": run.log.pop(); run.replayKnobs(); break;
    case "/api/fork": runs.set("b", run.fork("b")); tell("state", runs.get("b").state()); for (const part of runs.get("b").parts()) tell("samples", part); break;
    case "/api/close": runs.delete(body.run); tell("closed", { run: body.run }); break;
    default: return false;
  }
  run.touched = true;
  return true;
}

function get(url, response) {
  const run = runs.get(url.searchParams.get("run") ?? "a");
  const json = (data) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(data));
  switch (url.pathname) {
    case "/api/scenario": return json(scenario);
    case "/api/save": return response.writeHead(200, { "content-type": "text/plain" }).end(run.saved());
    case "/api/flows": return json(run.flows(url.searchParams.get("search") ?? "", Number(url.searchParams.get("limit") ?? 50)));
    case "/api/digest": return json({ files: ["flows", "samples"].map((name) => ({ name: `${name}.parquet`, sha256: "0123456789abcdef".repeat(4) })) });
    case "/api/packets": return json(run.packets(Number(url.searchParams.get("limit"))));
    case "/api/completions": return json(run.completions());
    case "/api/events":
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      for (const each of runs.values()) { send(response, "state", each.state()); send(response, "thresholds", each.thresholds()); }
      for (const each of runs.values()) for (const part of each.parts()) send(response, "samples", part);
      for (const each of runs.values()) {
        send(response, "watched", { run: each.name, flows: each.watched });
        send(response, "probes", each.probes());
      }
      listeners.add(response);
      response.on("close", () => listeners.delete(response));
      return;
  }
  const path = normalize(url.pathname === "/" ? "/index.html" : url.pathname);
  const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
  try {
    const file = readFileSync(join(dist, path));
    response.writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream" }).end(file);
  } catch {
    response.writeHead(404).end("not found");
  }
}

createServer((request, response) => {
  const url = new URL(request.url, "http://localhost");
  if (request.method !== "POST") return get(url, response);
  let text = "";
  request.on("data", (part) => { text += part; });
  request.on("end", () => {
    try {
      const known = post(url.pathname, JSON.parse(text || "{}"));
      response.writeHead(known ? 200 : 404, { "content-type": "application/json" }).end("{}");
    } catch (error) {
      response.writeHead(422, { "content-type": "application/json" }).end(JSON.stringify({ error: error.message }));
    }
  });
}).listen(Number(options.port), "127.0.0.1", () => console.log(`http://127.0.0.1:${options.port}/`));
