// The page of a controller: flows with their deadlines and windows, ports, and the state of the policy.
//   node test/controller.mjs URL
import assert from "node:assert/strict";
import { begin } from "./person.mjs";

const person = await begin(process.argv[2]);
const { page } = person;
const hasLines = (plot) => person.until((id) => document.getElementById(`plot-${id}`)?.closest("section").querySelectorAll(".legend li").length > 0, plot);

await person.check("the controller answers", async () => {
  await person.open();
  await person.until(() => document.getElementById("status").textContent === "Answers every second");
  return page.locator("#kind").innerText();
});
await person.check("its ports are there", async () => {
  await person.until(() => document.querySelectorAll("#switches tbody tr").length >= 2);
  return page.locator("#switches tbody th").allInnerTexts();
});
await person.check("flows have deadlines, windows and slack", async () => {
  await person.until(() => document.querySelectorAll("#flow-table tbody tr").length >= 3);
  for (const plot of ["window", "left", "slack", "remaining", "ports"]) await hasLines(plot);
  return page.locator("#flow-table tbody tr").first().innerText();
});
await person.check("the policy's state is told", async () => {
  const text = await page.locator("#fleet").innerText();
  assert.match(text, /everywhere|Nothing is known/);
  return text.split("\n")[0];
});
await person.check("axe finds nothing serious", () => person.accessible());
await person.check("it fits 500 pixels", async () => {
  await page.setViewportSize({ width: 500, height: 900 });
  await page.waitForTimeout(500);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 500);
});
await person.end();
