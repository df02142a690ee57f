// Requests to the server that the page came from. Its cookie authorizes them.
import type { Completions, Digests, Flows, Observed, PacketTrace, Probes, RunName, RunState, Samples, Scenario, Thresholds, Told, Watched } from "./protocol.ts";

/** A request that the server refused, with its words. */
export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

async function request(path: string, body?: unknown): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, body === undefined ? {} : {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "The studio does not answer. Is `weir studio` still running?");
  }
  if (response.ok) return response;
  const text = await response.text().catch(() => "");
  let message = text.trim();
  try {
    message = (JSON.parse(text) as { error?: string }).error ?? message;
  } catch {
    // Not JSON: the text itself is the message.
  }
  throw new Refused(response.status, message || `The studio refused this (status ${response.status}).`);
}

const get = async <Answer>(path: string): Promise<Answer> => (await request(path)).json() as Promise<Answer>;
const post = async (path: string, body: unknown): Promise<void> => void (await request(path, body));

export const scenario = (): Promise<Scenario | Observed> => get("api/scenario");
export const control = (run: RunName, action: string, more: { to?: number; by?: number } = {}): Promise<void> =>
  post("api/control", { run, action, ...more });
export const setSpeed = (run: RunName, speed: number | null): Promise<void> => post("api/speed", { run, speed });
export const change = (run: RunName, knob: string, value: number): Promise<void> => post("api/change", { run, knob, value });
export const act = (run: RunName, knob: string, action: string): Promise<void> => post("api/change", { run, knob, action });
export const undo = (run: RunName): Promise<void> => post("api/undo", { run });
export const fork = (): Promise<void> => post("api/fork", {});
export const close = (run: RunName): Promise<void> => post("api/close", { run });
export const save = async (run: RunName): Promise<string> => (await request(`api/save?run=${run}`)).text();
export const flows = (run: RunName, search: string, limit: number): Promise<Flows> =>
  get(`api/flows?run=${run}&search=${encodeURIComponent(search)}&limit=${limit}`);
export const watch = (run: RunName, names: string[]): Promise<void> => post("api/watch", { run, flows: names });
export const digest = (run: RunName): Promise<Digests> => get(`api/digest?run=${run}`);
export const packets = (run: RunName, kind: "flow" | "port", name: string, until: number, limit: number): Promise<PacketTrace> =>
  get(`api/packets?run=${run}&${kind}=${encodeURIComponent(name)}&until=${until}&limit=${limit}`);
export const completions = (run: RunName): Promise<Completions[]> => get(`api/completions?run=${run}`);

export interface Listener {
  /** The stream begins (again): everything known is sent anew. */
  begin(): void;
  state(state: RunState): void;
  thresholds(thresholds: Thresholds): void;
  reset(run: RunName, from: number): void;
  samples(samples: Samples): void;
  watched(watched: Watched): void;
  probes(probes: Probes): void;
  closed(run: RunName): void;
  /** The stream broke off; `refused` if the server answers but does not let this page in. */
  lost(refused: boolean): void;
}

/** Listens to the answers of something that is asked each second. The browser reconnects by itself. */
export function observe(listener: { begin(): void; status(told: Told): void; lost(text: string): void }): void {
  const source = new EventSource("api/events");
  source.addEventListener("open", () => listener.begin());
  source.addEventListener("status", (event) => listener.status(JSON.parse((event as MessageEvent<string>).data) as Told));
  source.addEventListener("error", () => {
    listener.lost("The connection to the studio is lost. The page goes on by itself when it is back.");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => observe(listener), 2000);
  });
}

/** Listens to the server's events. The browser reconnects by itself, unless the server refuses it. */
export function listen(listener: Listener): void {
  const source = new EventSource("api/events");
  const on = <Message>(name: string, handle: (message: Message) => void): void =>
    source.addEventListener(name, (event) => handle(JSON.parse((event as MessageEvent<string>).data) as Message));
  source.addEventListener("open", () => listener.begin());
  on<RunState>("state", (state) => listener.state(state));
  on<Thresholds>("thresholds", (thresholds) => listener.thresholds(thresholds));
  on<{ run: RunName; from: number }>("reset", ({ run, from }) => listener.reset(run, from));
  on<Samples>("samples", (samples) => listener.samples(samples));
  on<Watched>("watched", (watched) => listener.watched(watched));
  on<Probes>("probes", (probes) => listener.probes(probes));
  on<{ run: RunName }>("closed", ({ run }) => listener.closed(run));
  source.addEventListener("error", () => {
    scenario().then(
      () => listener.lost(false),
      (error: unknown) => listener.lost(error instanceof Refused && (error.status === 401 || error.status === 403)),
    );
    // After an answer other than a stream the browser gives up.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(listener), 2000);
  });
}
