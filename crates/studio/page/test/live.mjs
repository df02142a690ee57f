// A live run on the page while it goes on, and when it is over: it is stopped when enough has been seen.
//   node test/live.mjs URL FOLDER PROCESS
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { begin, number } from "./person.mjs";

const [url, folder, process_id] = process.argv.slice(2);
const person = await begin(url);
const { page } = person;
const status = () => page.locator("#status").innerText();

await person.check("the page of a live run opens while it goes on", async () => {
  await person.open();
  await person.until(() => document.getElementById("kind").textContent !== "");
  const kind = await page.locator("#kind").innerText();
  assert.equal(kind, "A live run, as it goes on.");
  assert.equal(await status(), "Running live");
});
await person.check("the network is drawn", async () => {
  const drawn = await page.locator("#topology .place").count();
  assert.ok(drawn >= 4, `${drawn} places`);
  assert.ok(await page.locator("#topology .port").count() > 0);
});
await person.check("queues, goodput, windows and round-trip times come as they are measured", async () => {
  for (const plot of ["queue", "goodput", "window", "rtt"]) {
    await person.until((id) => document.getElementById(`plot-${id}`)?.closest("section").querySelectorAll(".legend li").length > 0, plot);
  }
  const now = () => page.locator("#now").innerText();
  const before = await now();
  await person.until((text) => document.getElementById("now").textContent !== text, before);
  return `${before}, then ${await now()}`;
});
await person.check("a flow can be watched", async () => {
  await page.locator("#flows summary").click();
  await page.getByLabel("Plot dctcp/1").check();
  await person.until(() => document.querySelectorAll("#plot-flow-rtt").length > 0 && !document.getElementById("plot-flow-rtt").closest("section").hidden);
  await person.until(() => document.getElementById("plot-flow-window").closest("section").querySelectorAll(".legend li").length === 1);
});
await person.check("it cannot be changed", async () => {
  for (const id of ["play", "fork", "save", "packets"]) assert.ok(!await page.locator(`#${id}`).isVisible(), id);
  const refused = await page.evaluate(() => fetch("api/control", { method: "POST" }).then((answer) => answer.status));
  assert.equal(refused, 409);
});
await person.check("axe finds nothing serious", () => person.accessible());
await person.check("the page shows the finished run, with its figures", async () => {
  process.kill(Number(process_id), "SIGINT");
  await person.until(() => document.getElementById("status").textContent === "Ended");
  assert.equal(await page.locator("#kind").innerText(), "A finished live run, to look at.");
  await person.until(() => document.querySelectorAll("#compare tbody tr").length > 0);
  const summary = await page.evaluate(() => fetch("api/summary").then((answer) => answer.json()));
  await page.waitForTimeout(1500);
  const groups = await person.figures(0);
  for (const [name, { Share: [share] }] of Object.entries(groups)) {
    assert.ok(Math.abs(number(share) - 100 * summary.groups[name].share) < 5, `${name}: ${share}`);
  }
  return Object.entries(groups).map(([name, { Goodput }]) => `${name} ${Goodput[0]}`).join(", ");
});
await person.check("a reload shows it all again", async () => {
  await person.open();
  assert.equal(await status(), "Ended");
  await person.until(() => document.getElementById("plot-queue").closest("section").querySelectorAll(".legend li").length > 0);
});
await person.check("its files are written", () => {
  const summary = JSON.parse(readFileSync(join(folder, "summary.json"), "utf8"));
  assert.equal(summary.world, "live");
  assert.equal(summary.interrupted, true);
});
person.complaints = person.complaints.filter((text) => !text.includes("409"));
await person.end();
