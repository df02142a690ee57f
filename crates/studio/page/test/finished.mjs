// A finished run's directory on the page: to look at, with its samples, flows and figures, and nothing to change.
//   node test/finished.mjs URL FOLDER
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { begin, number } from "./person.mjs";

const [url, folder] = process.argv.slice(2);
const person = await begin(url);
const { page } = person;
const summary = JSON.parse(readFileSync(join(folder, "summary.json"), "utf8"));

await person.check("a finished run opens", async () => {
  await person.open();
  return page.locator("#kind").innerText();
});
await person.check("its figures are those of its summary", async () => {
  await page.waitForTimeout(1500);
  const groups = await person.figures(0);
  assert.deepEqual(Object.keys(groups), Object.keys(summary.groups));
  for (const [name, { Share: [share] }] of Object.entries(groups)) {
    // The summary leaves the warm-up out, and sampling ends a little before the run.
    if (summary.warm_up_s === 0) assert.ok(Math.abs(number(share) - 100 * summary.groups[name].share) < 2, `${name}: ${share}`);
  }
  return Object.entries(groups).map(([name, { Goodput }]) => `${name} ${Goodput[0]}`).join(", ");
});
await person.check("the network is drawn, with its load", async () => {
  await person.until(() => document.querySelectorAll("#topology .port").length > 0);
  await person.until(() => [...document.querySelectorAll("#topology .port title")].some((title) => /load [1-9]/.test(title.textContent)));
  return page.locator("#topology .place").count();
});
await person.check("thresholds are in the plots", async () => {
  assert.ok(await page.locator("#topology .thresholds line").count() > 0);
});
await person.check("nothing can be played or changed", async () => {
  for (const id of ["play", "fork", "save", "packets"]) assert.ok(!await page.locator(`#${id}`).isVisible(), id);
  const status = await page.evaluate(() => fetch("api/fork", { method: "POST" }).then((answer) => answer.status));
  assert.equal(status, 409);
});
await person.check("its flows are listed", async () => {
  await page.locator("#flows summary").click();
  await person.until(() => document.getElementById("flow-note").textContent !== "");
  assert.ok(await page.locator("#flow-table tbody tr").count() > 0);
  return page.locator("#flow-note").innerText();
});
await person.check("axe finds nothing serious", () => person.accessible());
person.complaints = person.complaints.filter((text) => !text.includes("409"));
await person.end();
