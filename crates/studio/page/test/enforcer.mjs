// The page of an enforcer between two hosts: flows, windows, and its rules before and after the policy changes.
//   node test/enforcer.mjs URL POLICY TURN, where the policy is changed once TURN exists
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { begin } from "./person.mjs";

const [url, , turn] = process.argv.slice(2);
const person = await begin(url);
const { page } = person;

const legends = (plot) => page.locator(`#plot-${plot}`).evaluate((title) => [...title.closest("section").querySelectorAll(".legend button span:not(.value)")].map((node) => node.textContent));
const hasLines = (plot) => person.until((id) => document.getElementById(`plot-${id}`)?.closest("section").querySelectorAll(".legend li").length > 0, plot);

await person.check("the enforcer answers", async () => {
  await person.open();
  await person.until(() => document.getElementById("status").textContent === "Answers every second");
  await person.until(() => document.querySelectorAll("#flow-table tbody tr").length >= 2);
  return page.locator("#kind").innerText();
});
await person.check("its flows have rates, round-trip times and windows", async () => {
  for (const plot of ["rate", "rtt", "window", "rule-flows"]) await hasLines(plot);
  const lines = await legends("window");
  assert.ok(lines.some((line) => line.endsWith("wanted")) && lines.some((line) => line.endsWith("announced")), lines.join("; "));
  return lines.join("; ");
});
await person.check("flows are chosen for the plots, and found", async () => {
  const first = await page.locator("#flow-table tbody th").first().innerText();
  await page.getByLabel(`Plot ${first}`).uncheck();
  await person.until((name) => ![...document.querySelectorAll("#plot-window ~ * span, .legend span")].some((node) => node.textContent.startsWith(name)), first);
  await page.locator("#flow-search").fill("no such flow");
  await person.until(() => document.querySelectorAll("#flow-table tbody tr").length === 0);
  await page.locator("#flow-search").fill("");
});
await person.check("a changed policy divides what was before from what is after", async () => {
  await page.waitForTimeout(3_000);
  writeFileSync(turn, "");
  await person.until(() => [...document.querySelectorAll("#rules th")].some((node) => node.textContent.includes("cubic")));
  const note = await page.locator("#rule-note").innerText();
  assert.match(note, /before and after/);
  const titles = await page.locator("#rules thead th").allInnerTexts();
  assert.ok(titles.includes("RTT before") && titles.includes("RTT after"), titles.join());
  return page.locator("#rules tbody th").allInnerTexts();
});
await person.check("nothing can be changed", async () => {
  for (const id of ["play", "fork", "save", "topology"]) assert.equal(await page.locator(`#${id}:visible`).count(), 0, id);
  const refused = await page.evaluate(() => fetch("api/change", { method: "POST" }).then((answer) => answer.status));
  assert.equal(refused, 409);
});
await person.check("a reload shows the past", async () => {
  await person.open();
  await hasLines("rate");
  await person.until(() => document.querySelectorAll("#rules thead th").length > 6);
});
await person.check("axe finds nothing serious", () => person.accessible());
await person.check("it fits 500 pixels", async () => {
  await page.setViewportSize({ width: 500, height: 900 });
  await page.waitForTimeout(500);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 500);
});
person.complaints = person.complaints.filter((text) => !text.includes("409"));
await person.end();
