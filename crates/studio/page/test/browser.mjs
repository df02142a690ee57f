// Uses the page as a person would, in Chromium, against a server that runs already.
//   node test/browser.mjs URL [--out FOLDER] [--step 5ms] [--knob ID] [--moves]
// URL, or WEIR_STUDIO_URL, is the address with its token. FOLDER gets screenshots and the saved
// scenario. `--knob` is the knob to drag, instead of the first one; with `--moves` the figures of the
// forked run, in which it is dragged, must become others. CHROMIUM is the browser's path.
// Prints a line for each check; the exit status is 1 if one fails.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: {
  out: { type: "string" }, step: { type: "string", default: "5ms" }, knob: { type: "string" },
  moves: { type: "boolean", default: false },
} });
const url = positionals[0] ?? process.env.WEIR_STUDIO_URL;
if (!url) {
  console.error("usage: node test/browser.mjs URL [--out FOLDER] [--step 5ms] [--knob ID]");
  process.exit(2);
}
if (options.out) mkdirSync(options.out, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// A slow machine is no failure.
const PATIENCE = 120_000;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, acceptDownloads: true });
context.setDefaultTimeout(PATIENCE);
const page = await context.newPage();
const complaints = [];
const foreign = [];
page.on("pageerror", (error) => complaints.push(String(error)));
page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
page.on("request", (request) => {
  const target = new URL(request.url());
  if (target.protocol.startsWith("http") && target.origin !== new URL(url).origin) foreign.push(request.url());
});

let failed = 0;
async function check(name, act) {
  try {
    const found = await act();
    console.log(`ok      ${name}${found === undefined ? "" : `: ${found}`}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}\n${String(error.stack ?? error).replace(/^/gm, "        ")}`);
  }
}

const now = () => page.locator("#time").inputValue().then(Number);
const until = (condition, argument) => page.waitForFunction(condition, argument, { timeout: PATIENCE });
const settled = () => until(() => !document.getElementById("status").textContent.includes("Simulating"));
const logged = () => page.locator("#log li").count();
const shot = (name) => options.out ? page.screenshot({ path: join(options.out, `${name}.png`) }) : undefined;
const chosenKnob = () => options.knob
  ? page.locator(`input[type=range][data-knob="${options.knob}"]`)
  : page.locator("#knobs input[type=range]").first();

async function drag(locator, from, to) {
  await locator.scrollIntoViewIfNeeded();
  const box = await locator.boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, y, { steps: 8 });
  await page.mouse.up();
}

async function dragKnob(by) {
  const slider = chosenKnob();
  await slider.evaluate((node) => { for (let box = node.closest("details"); box; box = box.parentElement.closest("details")) box.open = true; });
  const at = Number(await slider.inputValue()) / 1000;
  const to = at + by <= 0.97 ? at + by : at - by;
  const before = await logged();
  // The handle is inside the track: its centre never reaches the ends.
  await drag(slider, 0.02 + 0.96 * at, 0.02 + 0.96 * to);
  await until((count) => document.querySelectorAll("#log li").length === count, before + 1);
  await settled();
}

async function downloaded(locator) {
  const [download] = await Promise.all([page.waitForEvent("download"), locator.click()]);
  return { name: download.suggestedFilename(), content: readFileSync(await download.path()) };
}

async function accessible() {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(bad.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(", ")}`), []);
  return `${violations.length} lesser findings`;
}

await check("the page opens", async () => {
  await page.goto(url);
  await page.waitForSelector("body.ready");
  await until(() => document.getElementById("status").textContent !== "");
  return page.title();
});
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
  await page.locator("#step").click();
  await settled();
  await dragKnob(0.1);
  const inB = await logged();
  await page.locator("#tab-a").click();
  await until((count) => document.querySelectorAll("#log li").length < count, inB);
  await page.locator("#step").click();
  await settled();
  const lines = await page.locator(".plot .legend").first().innerText();
  assert.match(lines, /\(a\)/);
  assert.match(lines, /\(b\)/);
  await shot("fork");
});
await check("the runs' figures stand beside each other", async () => {
  const figures = () => page.locator("#compare table").first().locator("tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  for (let steps = 0; steps < 5; steps++) {
    const at = await now();
    await page.locator("#step").click();
    await until((time) => Number(document.getElementById("time").value) > time, at);
    await settled();
  }
  await page.waitForTimeout(1500);
  const rows = await figures();
  assert.ok(rows.length > 0 && rows[0].length > 2);
  if (options.moves) assert.ok(rows.some((row) => row[1] !== row[2]), JSON.stringify(rows));
  return rows.map((row) => `${row[0]} ${row[1]} and ${row[2]}, share ${row[3]} and ${row[4]}`).join("; ");
});
await check("save as scenario gives a file with the changes", async () => {
  const { name, content } = await downloaded(page.locator("#save"));
  assert.match(name, /\.toml$/);
  assert.match(content.toString(), /\[\[changes\]\]/);
  if (options.out) (await import("node:fs")).writeFileSync(join(options.out, "saved.toml"), content);
  return `${name}, ${content.length} bytes`;
});
await check("a drag zooms all plots, a double click shows all again", async () => {
  const plot = page.locator(".plot .u-over").first();
  await drag(plot, 0.2, 0.6);
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
  const save = async (format) => (await downloaded(page.locator(".plot").first().getByRole("button", { name: `as ${format}` }))).content;
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
  await page.locator("#knobs input[type=range]").first().focus();
  await page.keyboard.press("PageDown");
  await until((count) => document.querySelectorAll("#log li").length !== count, before);
  await settled();
});
await check("axe finds nothing serious: light", accessible);
await page.evaluate(() => scrollTo(0, 0));
await shot("light");
await page.emulateMedia({ colorScheme: "dark" });
await check("dark is dark", async () => {
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.ok(ground.match(/\d+/g).slice(0, 3).every((part) => Number(part) < 60), ground);
});
await check("axe finds nothing serious: dark", accessible);
await shot("dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 500, height: 900 });
await check("500 pixels are enough", async () => {
  await page.waitForTimeout(300);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 500);
});
await check("axe finds nothing serious: 500 pixels", accessible);
await shot("narrow");
await check("nothing is loaded from elsewhere", () => assert.deepEqual(foreign, []));
await check("the browser has no complaints", () => assert.deepEqual(complaints.filter((text) => !text.includes("status of 422")), []));
await browser.close();
console.log(failed === 0 ? "all checks passed" : `${failed} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;
