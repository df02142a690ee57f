// An invented run of the stand-in server: saws and noise that follow the knobs.

const STEP = 0.001;

export class Run {
  constructor(name, scenario) {
    Object.assign(this, { name, scenario, now: 0, status: "paused", speed: 0.1, log: [], touched: true, watched: [], news: true });
    this.replayKnobs();
    this.clear();
  }

  clear() {
    this.time = [];
    this.ports = this.scenario.ports.map(() => ({ queue: [], sent: [], marks: [], drops: [] }));
    this.groups = this.scenario.groups.map(() => ({ window: [], delivered: [], marks: [], retransmitted: [], timeouts: [] }));
  }

  replayKnobs() {
    this.knobs = Object.fromEntries(this.scenario.knobs.map((knob) => [knob.id, knob.value ?? knob.undo]));
    for (const entry of this.log) this.knobs[entry.knob] = entry.value ?? entry.action;
  }

  state() {
    const { name, now, status, speed, log, knobs } = this;
    const failed = Object.keys(knobs).filter((id) => knobs[id] === "fail");
    return { run: name, now, status, speed, log, error: null, knobs, failed };
  }

  watch(flows) {
    this.watched = flows;
    this.news = true;
  }

  // Everything that is seen of groups and flows, from an index of the samples on.
  probes(start = 0) {
    const time = this.time.slice(start);
    const wave = (phase, size) => time.map((at) => size * (1 + 0.3 * Math.sin(at * 60 + phase)));
    return {
      run: this.name, time, fairness: wave(1, 0.7),
      groups: this.scenario.groups.map((_, index) => ({ rtt: wave(index, 2e-4), alpha: wave(index, index % 2 === 0 ? 0.3 : NaN), fairness: wave(index, 0.75) })),
      flows: this.watched.map((_, index) => ({
        delivered: time.map((at) => at * 1e6 * (index + 1)), window: wave(index, 3e4), rtt: wave(index, 3e-4),
        alpha: wave(index, 0.4), marks: time.map((at) => Math.round(at * 200 * index)), retransmitted: time.map(() => 1460 * index),
      })),
    };
  }

  packets(limit) {
    const nodes = this.scenario.nodes.slice(0, 4);
    const packets = Array.from({ length: limit }, (_, index) => {
      const start = this.now - (limit - index) * 12e-6;
      const back = index % 3 === 2;
      const hops = nodes.slice(1).map((_, hop) => ({
        port: "left->right", from: back ? nodes.length - 1 - hop : hop, to: back ? nodes.length - 2 - hop : hop + 1,
        sent: start + hop * 20e-6, arrived: start + hop * 20e-6 + 13e-6, ecn: index % 7 === 0 && hop > 0 ? "CE" : "ECT(0)", marked: index % 7 === 0 && hop === 1,
      }));
      const lost = index % 31 === 5;
      return { flow: "dctcp/3", kind: "ACK", text: `Seq=${index * 1448} Ack=1 Len=1448`, length: back ? 52 : 1500, retransmitted: index % 31 === 9,
        lost: lost ? nodes[1].name : null, hops: lost ? hops.slice(0, 1) : hops };
    });
    return { from: this.now - 0.01, until: this.now, lanes: nodes, packets, is_cut: true };
  }

  thresholds() {
    return { run: this.name, ports: this.scenario.ports.map(({ name }) => {
      const turns = this.log.filter(({ knob }) => knob === `queue:${name}:marking.threshold`);
      const starts = [{ at: 0, value: 30000 }, ...turns];
      return starts.map(({ at, value }, index) => ({ label: "K", bytes: value, from: at, until: starts[index + 1]?.at ?? null }));
    }) };
  }

  // All samples, in events of a bearable size.
  *parts() {
    for (let start = 0; start < this.time.length; start += 2000) yield this.since(start, start + 2000);
  }

  sample() {
    this.now = Number((this.now + STEP).toFixed(6));
    this.time.push(this.now);
    const wave = (period, phase) => ((this.now / period + phase) % 1);
    const last = (list) => list[list.length - 1] ?? 0;
    this.scenario.ports.forEach(({ name, rate }, index) => {
      const port = this.ports[index];
      const threshold = this.knobs[`queue:${name}:marking.threshold`] ?? 30000;
      const failed = this.knobs[`fail:${name}`] === "fail";
      const busy = 1 / (1 + (index % 7));
      const queue = failed ? 0 : threshold * busy * (0.55 + 0.6 * wave(0.02 + 0.003 * index, index * 0.37) + 0.15 * Math.random());
      port.queue.push(Math.round(queue));
      port.sent.push(last(port.sent) + (failed ? 0 : (rate / 8) * STEP * Math.min(1, busy * (0.9 + 0.1 * Math.random()))));
      port.marks.push(last(port.marks) + (queue > threshold ? Math.round(40 * Math.random()) : 0));
      port.drops.push(last(port.drops) + (queue > 1.15 * threshold && Math.random() < 0.2 ? 1 : 0));
    });
    const first = this.scenario.knobs[0];
    const tilt = Math.log(this.knobs[first.id] / 30000) / 12;
    this.scenario.groups.forEach((_, index) => {
      const group = this.groups[index];
      const share = Math.min(Math.max((index % 2 === 0 ? 0.55 - tilt : 0.45 + tilt), 0.02), 0.98) * 2 / this.scenario.groups.length;
      const goodput = 9.4e8 * share * (0.92 + 0.1 * wave(0.05 + 0.01 * index, index * 0.2) + 0.04 * Math.random());
      group.window.push(this.now < 0.01 ? null : Math.round(goodput * 1.2e-4));
      group.delivered.push(last(group.delivered) + (goodput / 8) * STEP);
      group.marks.push(last(group.marks) + (index % 2 === 0 ? Math.round(20 * Math.random()) : 0));
      group.retransmitted.push(last(group.retransmitted) + (index % 2 === 1 && Math.random() < 0.1 ? 1460 : 0));
      group.timeouts.push(0);
    });
  }

  jump(samples) {
    for (let i = 0; i < samples; i++) this.sample();
    this.scenario.duration = Math.max(this.scenario.duration, this.now);
  }

  // The samples of `elapsed` seconds of real time, or null while nothing happens.
  advance(elapsed) {
    if (this.status !== "playing") return null;
    const start = this.time.length;
    this.credit = (this.credit ?? 0) + (this.speed === null ? 100 : (elapsed * this.speed) / STEP);
    while (this.credit >= 1 && this.now < this.scenario.duration) { this.credit--; this.sample(); }
    if (this.now >= this.scenario.duration) this.status = "ended";
    return this.since(start);
  }

  since(start, end) {
    const cut = (set) => Object.fromEntries(Object.entries(set).map(([key, list]) => [key, list.slice(start, end)]));
    return { run: this.name, time: this.time.slice(start, end), ports: this.ports.map(cut), groups: this.groups.map(cut) };
  }

  // Carries out an action; the time from which samples are void, or null.
  control({ action, to, by }) {
    const go = (until) => { while (this.now + STEP / 2 < until && this.now < this.scenario.duration) this.sample(); };
    if (action === "play" && this.status !== "ended") this.status = "playing";
    if (action === "pause" && this.status === "playing") this.status = "paused";
    if (action === "restart") to = 0;
    if (action === "step") { this.status = "paused"; to = this.now + by; }
    if (to === undefined) return null;
    const start = this.time.length;
    if (to < this.now) { this.clear(); this.now = 0; }
    if (this.status === "ended" && to < this.scenario.duration) this.status = "paused";
    go(to);
    return this.time.length < start ? 0.0000001 : this.time[start] ?? null;
  }

  change({ knob: id, value, action }, refuse) {
    const knob = this.scenario.knobs.find((candidate) => candidate.id === id);
    if (!knob) refuse(`there is no knob ${id}`);
    if (knob.label === "drop_probability" && value > 0.9) refuse("drop_probability: above 0.9 no packet would pass");
    this.knobs[id] = value ?? action;
    this.log.push({ at: this.now, text: `${knob.section}: ${knob.label} = ${value ?? action}`, knob: id, value, action });
  }

  fork(name) {
    const other = new Run(name, this.scenario);
    return Object.assign(other, structuredClone({ now: this.now, status: this.status, speed: this.speed, log: this.log, knobs: this.knobs, time: this.time, ports: this.ports, groups: this.groups }));
  }

  saved() {
    return `# ${this.scenario.title}\n` + this.log.map((entry) => `\n[[changes]]\nat = "${entry.at}s"\n# ${entry.text}\n`).join("");
  }

  flows(search, limit) {
    const all = Array.from({ length: 10000 }, (_, index) => ({
      name: `${index % 2 === 0 ? "dctcp" : "cubic"}/${index}`, source: `host${index % 96}`, destination: `host${(index * 7) % 96}`,
      started: index * 1e-4, delivered: 1e4 + index * 900, goodput: 1e5 + index * 1e4, window: 14600 + index, rtt: 1e-4 + (index % 50) * 1e-6, marks: index % 90, retransmitted: 1460 * (index % 7), timeouts: index % 3,
    })).filter((flow) => `${flow.name} ${flow.source} ${flow.destination}`.includes(search));
    return { total: all.length, flows: all.slice(0, limit) };
  }

  completions() {
    const sizes = Object.fromEntries(["10KB", "100KB", "1MB", "above"].map((size, index) =>
      [size, { completed: 5000 - 1000 * index, unfinished: 0, p50: 1.3 + 0.2 * index, p95: 4 + index, p99: 20 - 3 * index }]));
    return this.scenario.groups.map(({ name }, index) => ({
      group: name,
      cdf: Array.from({ length: 200 }, (_, point) => [(1 + index) * 1e-4 * 10 ** (3 * (point / 199) ** 2), (point + 1) / 200]),
      slowdown: index === 0 ? { completed: 14000, unfinished: 0, sizes } : null,
    }));
  }
}
