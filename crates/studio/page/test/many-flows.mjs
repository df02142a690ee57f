// 10,000 flows and 64 ports stay usable. Prints how long zoom and pan steps take.
//   node test/many-flows.mjs URL
import assert from "node:assert/strict";
import { begin } from "./person.mjs";

const [url] = process.argv.slice(2);
const person = await begin(url);
const { page } = person;

await person.check("10,000 flows and 64 ports open", () => person.open());
await person.check("they go on", () => person.step("30ms"));
await person.check("the worst ports are listed first, and found by their names", async () => {
  await page.locator("#ports summary").click();
  const [first] = await page.locator("#ports .value").allInnerTexts();
  await page.locator("#ports input[type=search]").fill("host64");
  await person.until(() => document.querySelectorAll("#ports .chooser li").length === 1);
  return `${await page.locator("#ports .aside").innerText()} The longest mean queue: ${first}`;
});
await person.check("the slowest flows are listed first; some of them are plotted", async () => {
  await page.locator("#flows summary").click();
  await person.until(() => /of [\d,]+ open flows/.test(document.getElementById("flow-note").textContent));
  await page.locator("#watched summary").click();
  await page.locator("#watched button", { hasText: "The slowest" }).click();
  await person.until(() => document.querySelectorAll("#watched .chooser li").length === 5);
  await person.settled();
  await person.until(() => [...document.querySelectorAll(".plot:not([hidden]) h3")].some((title) => title.textContent.startsWith("Goodput of flows")));
  return `${await page.locator("#flow-note").innerText()} ${await page.locator("#watched .aside").innerText()}`;
});
await person.check("a flow's packets are shown as a diagram and as a list", async () => {
  await page.locator("#watched button", { hasText: "packets" }).first().click();
  await person.until(() => document.querySelectorAll("#packet-table tbody tr").length > 0);
  assert.ok(await page.locator("#packet-diagram .way").count() > 0);
  return page.locator("#packet-note").innerText();
});
await person.check("zoom and pan steps", async () => {
  await page.locator("#plots").evaluate((node) => node.scrollIntoView());
  await person.zoom(0.1, 0.9);
  for (let step = 0; step < 40; step++) {
    await page.keyboard.press(["Shift+ArrowRight", "Shift+ArrowLeft", "+", "-"][step % 4]);
    await page.waitForTimeout(60);
  }
  const { steps, script, frame } = await page.evaluate(() => window.weirZoomTimes());
  const text = ({ p50, p95 }) => `${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`;
  return `${steps} steps: script ${text(script)}; until the next frame ${text(frame)}`;
});
await person.end();
