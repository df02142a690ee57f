// A rule that is tried on a part of the connections, and a version of a policy on its way, on pages that are told of them by
// invented answers: as `weir enforce status --json` and `weir policy status --json` have them.
//   node test/tried.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { begin } from "./person.mjs";

const KINDS = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css" };

/** Serves the page, and these answers, of which the last one comes two seconds later. */
function serve(kind, answers) {
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    if (path === "/api/scenario") return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ kind, name: "a test" }));
    if (path === "/api/events") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const tell = (answer, at) => response.write(`event: status\ndata: ${JSON.stringify({ at, answer })}\n\n`);
      answers.slice(0, -1).forEach(tell);
      setTimeout(() => tell(answers.at(-1), answers.length - 1), 2_000);
      return;
    }
    const file = path === "/" ? "index.html" : path.slice(1);
    response.writeHead(200, { "content-type": KINDS[file.split(".").at(-1)] }).end(readFileSync(new URL(`../dist/${file}`, import.meta.url)));
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve({ server, url: `http://127.0.0.1:${server.address().port}/` })));
}

const estimate = (value) => ({ value, low: value * 0.8, high: value * 1.3 });
const connections = (rtt) => ({ connections: 240, completed: 200, segments_sent: 9000, segments_retransmitted: 40, delivered: 8e7, figures: { rtt: estimate(rtt), retransmits: { value: 0.004, low: 0.001, high: null } } });
const period = (seconds, rtt) => ({ seconds, treated: connections(rtt), control: connections(2e-3), differences: { rtt: estimate(rtt - 2e-3) } });
const rule = { line: 4, algorithm: "dctcp", is_current: true, flows: 12, control_flows: 100, flows_without_ecn: 0, overridden_flows: 0, matched: 250, applied: 240, without_ecn: 0, overridden: 0, undone: 0, not_undone: 0, refused: {} };
const atSockets = (share, rtt, more = {}) => ({
  interfaces: [], totals: {}, flows: [], all_flows: 0,
  sockets: { cgroup: "/sys/fs/cgroup", is_dry_run: false, rules: [rule], canaries: [{ line: 4, share, is_compared: true, recent: period(30, rtt), total: period(undefined, rtt), ...more }] },
});
const undone = { undone: { ms_ago: 1_000, reason: "retransmits 3 % > 2x 0.4 % for 30s" } };

const enforcer = await serve("enforcer", [...Array(20).keys()].map((second) => atSockets(second < 8 ? 0.1 : 0.5, (10 + second) * 1e-4)).concat(atSockets(0.5, 3e-3, undone)));
const person = await begin(enforcer.url);
const { page } = person;
const fits = async () => {
  await page.setViewportSize({ width: 500, height: 900 });
  await page.waitForTimeout(300);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 500);
  await page.setViewportSize({ width: 1400, height: 1000 });
};

await person.check("a rule that is tried has its share and figures with intervals", async () => {
  await person.open();
  await person.until(() => document.querySelectorAll("#canaries .canary").length === 1);
  const text = await page.locator("#canaries").innerText();
  assert.match(text, /In force for 50 % of its connections, compared with the others/);
  assert.match(text, /2.9 ms \(2.32 ms to 3.77 ms\)/);
  assert.match(text, /0.4 % \(0.1 % to \?\)/);
});
await person.check("figures with and without it are drawn over time", async () => {
  const lines = () => page.locator("#plot-canary-rtt").evaluate((title) => [...title.closest("section").querySelectorAll(".legend button")].map((node) => node.textContent));
  assert.deepEqual((await lines()).map((line) => line.slice(0, "rule at line 4, with".length)), ["rule at line 4, with", "rule at line 4, with"]);
});
await person.check("a guard that takes it back is told", async () => {
  await person.until(() => document.querySelector("#canaries .alarm"));
  return page.locator("#canaries .alarm").innerText();
});
await person.check("axe finds nothing serious", () => person.accessible());
await person.check("it fits 500 pixels", fits);

const fleet = (stage, waited) => ({
  fleet: "f", controller: "ctl1", decision: 7, version: 3, newest: 4, attached: 20, known: 21, ahead_of_store: null, versions: [],
  rollout: { version: 4, stage, stages: "10 % of role=web, then 50 %, then all", wait_s: 600, guards: ["retransmits > 2x for 1min"], taken: 2, pending: 1, refusals: 0, waited_s: waited, figures: { rtt: { treated: estimate(2e-3), control: estimate(3e-3) } } },
  hosts: [{ name: "web1", labels: { role: "web" }, attached: true, running: 4, assigned: 4, since: "2026-01-01T00:00:00Z", problem: null }, { name: "web2", labels: {}, attached: false, running: 3, assigned: 4, since: "2026-01-01T00:00:00Z", problem: "no dctcp" }],
});
const flow = { from: "10.0.0.1:80", to: "10.0.0.2:4000", switch: "tor1", port: 1, size: 4e7, acknowledged: 1e7, left: -0.2, window: 20_000, slack: -0.3 };
const sed = { name: "ctl1", term: 2, up: 60, all_flows: 1, registrations: 0, senders: 0, flows: [flow], switches: [{ name: "tor1", attached: true, ports: [{ name: "wan0", number: 1, rate: 1e9, congested: true, governed: true, flows: 1 }] }] };
const told = (stage, waited) => ({ sed, fleet: fleet(stage, waited), fleet_problem: null });
const controller = await serve("controller", [told(1, null), told(1, 20), told(2, null)]);
await person.check("a version on its way has its stages", async () => {
  await page.goto(controller.url);
  await person.until(() => document.querySelector(".stages [aria-current=step]")?.textContent === "10 % of role=web");
  await person.until(() => document.querySelector(".stages [aria-current=step]")?.textContent === "50 %");
  assert.equal(await page.locator(".stages .done").innerText(), "10 % of role=web");
  const text = await page.locator("#fleet").innerText();
  assert.match(text, /Version 3 everywhere; 20 hosts attached, 21 known/);
  assert.match(text, /It goes back if retransmits > 2x for 1min/);
  assert.equal(await page.locator("#fleet .alarm").count(), 2);
});
await person.check("a flow that will be late is red, and its slack is below zero", async () => {
  assert.equal(await page.locator("#flow-table .alarm").count(), 2);
  assert.match(await page.locator("#flow-table tbody tr").first().innerText(), /−300 ms/);
});
await person.check("axe finds nothing serious", () => person.accessible());
await person.check("it fits 500 pixels", fits);
person.foreign = person.foreign.filter((address) => !address.startsWith(controller.url));
await person.end();
enforcer.server.closeAllConnections();
controller.server.closeAllConnections();
enforcer.server.close();
controller.server.close();
