// Uses the page as a person would, in Chromium, against a server that runs already.
//   node test/browser.mjs URL [--out FOLDER] [--step 5ms] [--knob ID]
// URL, or WEIR_STUDIO_URL, is the address with its token. FOLDER gets screenshots and the saved
// scenario. `--knob` is the knob to drag, instead of the first one. CHROMIUM is the browser's path.
// Prints a line for each check; the exit status is 1 if one fails.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { begin } from "./person.mjs";

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: {
  out: { type: "string" }, step: { type: "string", default: "5ms" }, knob: { type: "string" },
} });
const url = positionals[0] ?? process.env.WEIR_STUDIO_URL;
if (!url) {
  console.error("usage: node test/browser.mjs URL [--out FOLDER] [--step 5ms] [--knob ID]");
  process.exit(2);
}
if (options.out) mkdirSync(options.out, { recursive: true });

const person = await begin(url);
const { page } = person;
const check = person.check.bind(person);
const now = () => person.now();
const until = (condition, argument) => person.until(condition, argument);
const settled = () => person.settled();
const logged = () => person.logged();
const shot = (name) => options.out ? page.screenshot({ path: join(options.out, `${name}.png`) }) : undefined;
const slider = options.knob ? person.knob(options.knob) : page.locator("#knobs input[type=range]").first();
const dragKnob = (by) => person.dragKnob(slider, by);

await check("the page opens", () => person.open());
await check("play lets time go on, pause stops it", async () => {
  await page.locator("#step-by").fill(options.step);
  await page.locator("#step-by").press("Enter");
  await page.locator("#speed").selectOption({ index: 6 });
  await page.locator("#play").click();
  await until(() => Number(document.getElementById("time").value) > 0);
  await page.locator("#play").click();
  await until(() => document.getElementById("status").textContent.includes("Paused"));
});
await check("step goes on by the chosen time", async () => {
  const before = await now();
  for (let steps = 0; steps < 4; steps++) {
    const at = await now();
    await page.locator("#step").click();
    await until((time) => Number(document.getElementById("time").value) > time, at);
    await settled();
  }
  assert.ok(await now() > before);
});
await check("the plots have lines", async () => {
  await until(() => document.querySelectorAll(".plot canvas").length > 0);
  return `${await page.locator(".plot canvas").count()} plots`;
});
await check("dragging a knob adds a change to the log", async () => {
  await dragKnob(0.15);
  return page.locator("#log li").last().innerText();
});
await check("a value that makes no sense is refused beside its knob", async () => {
  const field = page.locator("#knobs .knob input.quantity").first();
  const before = await logged();
  const good = await field.inputValue();
  await field.fill("plenty");
  await field.press("Enter");
  const error = page.locator("#knobs .knob .error").first();
  await until(() => document.querySelector("#knobs .knob .error").textContent !== "");
  assert.equal(await logged(), before);
  const words = await error.innerText();
  await field.fill(good);
  await field.press("Enter");
  return words;
});
await check("undo takes the last change back", async () => {
  const before = await logged();
  await page.locator("#undo").click();
  await until((count) => document.querySelectorAll("#log li").length === count, before - 1);
  await settled();
  await dragKnob(0.15);
});
await check("fork opens a second run, whose knobs are its own", async () => {
  await page.locator("#fork").click();
  await page.locator("#tab-b[aria-selected=true]").waitFor();
  await settled();
  await person.step(options.step);
  // Down: a threshold above the buffer is refused.
  await dragKnob(-0.1);
  const inB = await logged();
  await page.locator("#tab-a").click();
  await until((count) => document.querySelectorAll("#log li").length < count, inB);
  await person.step(options.step);
  const lines = await page.locator(".plot .legend").first().innerText();
  assert.match(lines, /\(a\)/);
  assert.match(lines, /\(b\)/);
  await shot("fork");
});
await check("the runs' figures stand beside each other", async () => {
  for (let steps = 0; steps < 5; steps++) {
    const at = await now();
    await page.locator("#step").click();
    await until((time) => Number(document.getElementById("time").value) > time, at);
    await settled();
  }
  await page.waitForTimeout(1500);
  const rows = Object.entries(await person.figures(0));
  assert.ok(rows.length > 0);
  assert.ok(rows.some(([, figures]) => Object.values(figures).some(([a, b]) => a !== b)), JSON.stringify(rows));
  return rows.map(([name, { Goodput, Share }]) => `${name} ${Goodput.join(" and ")}, share ${Share.join(" and ")}`).join("; ");
});
await check("save as scenario gives a file with the changes", async () => {
  const { name, content } = await person.downloaded(page.locator("#save"));
  assert.match(name, /\.toml$/);
  assert.match(content.toString(), /\[\[changes\]\]/);
  if (options.out) writeFileSync(join(options.out, "saved.toml"), content);
  return `${name}, ${content.length} bytes`;
});
await check("a drag zooms all plots, a double click shows all again", async () => {
  const plot = page.locator(".plot .u-over").first();
  await person.drag(plot, 0.2, 0.6);
  await until(() => !document.getElementById("zoom-out").disabled);
  for (let step = 0; step < 12; step++) {
    await page.keyboard.press(step % 2 === 0 ? "Shift+ArrowRight" : "Shift+ArrowLeft");
  }
  await plot.dblclick();
  await until(() => document.getElementById("zoom-out").disabled);
  await page.waitForTimeout(100);
  return JSON.stringify(await page.evaluate(() => window.weirZoomTimes()));
});
await check("the legend toggles a line", async () => {
  const entry = page.locator(".plot .legend button").first();
  await entry.click();
  assert.equal(await entry.getAttribute("aria-pressed"), "false");
  await entry.click();
  assert.equal(await entry.getAttribute("aria-pressed"), "true");
});
await check("a plot is saved as PNG, SVG and CSV", async () => {
  const save = async (format) => (await person.downloaded(page.locator(".plot").first().getByRole("button", { name: `as ${format}` }))).content;
  assert.equal((await save("PNG")).subarray(1, 4).toString(), "PNG");
  assert.match((await save("SVG")).toString(), /^<svg [^]*<path [^]*<\/svg>\n$/);
  const rows = (await save("CSV")).toString().trim().split("\n");
  assert.match(rows[0], /^time \(s\),/);
  assert.ok(rows.length > 2);
  return `${rows.length - 1} rows`;
});
await check("flows are listed", async () => {
  await page.locator("#flows summary").click();
  await page.locator("#flows").scrollIntoViewIfNeeded();
  await until(() => document.getElementById("flow-note").textContent !== "");
  return page.locator("#flow-note").innerText();
});
await check("a flow is plotted, and its packets are shown", async () => {
  await page.locator("#flow-table input[type=checkbox]").first().check();
  await settled();
  await until(() => [...document.querySelectorAll(".plot:not([hidden]) h3")].some((title) => title.textContent.startsWith("Round-trip time of flows")));
  await page.locator("#flow-table button.link").first().click();
  await until(() => document.querySelectorAll("#packet-table tbody tr").length > 0);
  await page.locator("#packet-table tbody tr").first().click();
  assert.equal(await page.locator("#packet-diagram .way.chosen").count(), 1);
  return page.locator("#packet-note").innerText();
});
await check("a port's packets are shown by the key p", async () => {
  await page.locator("#topology .port").first().focus();
  const before = await page.locator("#packet-note").innerText();
  await page.keyboard.press("p");
  await until((text) => document.getElementById("packet-note").textContent !== text && document.querySelectorAll("#packet-table tbody tr").length > 0, before);
  await until(() => / packets from /.test(document.getElementById("packet-note").textContent));
  await shot("packets");
  return page.locator("#packet-note").innerText();
});
await check("a link fails at a click, and is whole again after undo", async () => {
  const fail = page.locator("#knobs .knob.action button").first();
  if (await fail.count() === 0) return "the scenario has no link to fail";
  await fail.evaluate((node) => { node.closest("details").open = true; });
  const before = await logged();
  await fail.click();
  await until((count) => document.querySelectorAll("#log li").length === count, before + 1);
  await settled();
  const text = await page.locator("#log li").last().innerText();
  await page.locator("#undo").click();
  await until((count) => document.querySelectorAll("#log li").length === count, before);
  await settled();
  return text;
});
await check("run b closes", async () => {
  await page.locator("#close").click();
  await page.locator("#fork").waitFor();
});
await check("a reload keeps the run", async () => {
  const before = await now();
  const changes = await logged();
  await page.reload();
  await page.waitForSelector("body.ready");
  await until((count) => document.querySelectorAll("#log li").length === count, changes);
  await until((time) => Number(document.getElementById("time").value) >= time, before);
});
await check("the space bar plays and pauses, arrows step and go back", async () => {
  await page.locator("h1").click();
  await page.keyboard.press("Space");
  await until(() => document.getElementById("play").classList.contains("going"));
  await page.keyboard.press("Space");
  await until(() => !document.getElementById("play").classList.contains("going"));
  const at = await now();
  await page.keyboard.press("ArrowRight");
  await until((time) => Number(document.getElementById("time").value) > time, at);
  await settled();
  const later = await now();
  await page.keyboard.press("ArrowLeft");
  await until((time) => Number(document.getElementById("time").value) < time, later);
  await settled();
});
await check("the keyboard alone reaches and turns a knob", async () => {
  await page.locator("h1").click();
  const reached = new Set();
  const wanted = ["restart", "play", "step", "step-by", "speed", "time", "fork", "save"];
  for (let presses = 0; presses < 400 && !wanted.every((id) => reached.has(id)); presses++) {
    await page.keyboard.press("Tab");
    const { id, outline } = await page.evaluate(() => ({
      id: document.activeElement.id,
      outline: getComputedStyle(document.activeElement).outlineStyle,
    }));
    if (wanted.includes(id)) {
      reached.add(id);
      assert.notEqual(outline, "none", `#${id} does not show its focus`);
    }
  }
  assert.deepEqual(wanted.filter((id) => !reached.has(id)), []);
  const before = await logged();
  await slider.focus();
  await page.keyboard.press("PageDown");
  await until((count) => document.querySelectorAll("#log li").length !== count, before);
  await settled();
});
await check("axe finds nothing serious: light", () => person.accessible());
await page.evaluate(() => scrollTo(0, 0));
await shot("light");
await page.emulateMedia({ colorScheme: "dark" });
await check("dark is dark", async () => {
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.ok(ground.match(/\d+/g).slice(0, 3).every((part) => Number(part) < 60), ground);
});
await check("axe finds nothing serious: dark", () => person.accessible());
await shot("dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 500, height: 900 });
await check("500 pixels are enough", async () => {
  await page.waitForTimeout(300);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 500);
});
await check("axe finds nothing serious: 500 pixels", () => person.accessible());
await shot("narrow");
await person.end();
