// Opens reports from their files as a person would, in Chromium.
//   node test/report.mjs FOLDER [--out FOLDER]
// FOLDER has one/report.html (three groups that coincide, transfers, marks and drops), many/report.html (2,000 groups,
// 64 ports) and compared.html (two sets of seeds). `--out` gets screenshots. CHROMIUM is the browser's path.
// Prints a line for each check; the exit status is 1 if one fails.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: "string" } } });
const folder = positionals[0];
if (!folder) {
  console.error("usage: node test/report.mjs FOLDER [--out FOLDER]");
  process.exit(2);
}
if (options.out) mkdirSync(options.out, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const MOST_BYTES = 2_000_000;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1200, height: 1000 }, acceptDownloads: true });
// A slow machine is no failure.
context.setDefaultTimeout(120_000);
const page = await context.newPage();
const complaints = [];
const requests = [];
page.on("pageerror", (error) => complaints.push(String(error)));
page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
page.on("request", (request) => requests.push(request.url()));

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

const until = (condition, argument) => page.waitForFunction(condition, argument);
const shot = (name) => options.out ? page.screenshot({ path: join(options.out, `${name}.png`) }) : undefined;
const file = (name) => resolve(folder, name);
async function open(name) {
  await page.goto(pathToFileURL(file(name)).href);
  await page.waitForSelector("body.ready");
}
async function drag(locator, from, to) {
  await locator.scrollIntoViewIfNeeded();
  const box = await locator.boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, y, { steps: 8 });
  await page.mouse.up();
}
async function accessible() {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(bad.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(", ")}`), []);
  return `${violations.length} lesser findings`;
}
const plot = (title) => page.locator(".plot", { has: page.getByRole("heading", { name: title }) });
const pixels = (of) => of.locator("canvas").evaluate((canvas) => canvas.toDataURL());

await check("a report opens from its file", async () => {
  await open("one/report.html");
  const titles = await page.locator(".plot h3").allInnerTexts();
  for (const title of ["Queue", "Goodput", "Congestion window", "Marks", "Drops", "Completion times (CDF)", "Slowdown by size"]) {
    assert.ok(titles.some((found) => found.startsWith(title)), `${title} is not among ${titles.join(", ")}`);
  }
  return `${titles.length} plots, ${statSync(file("one/report.html")).size} bytes`;
});
await check("a legend's entry hides and shows its line", async () => {
  const goodput = plot(/^Goodput/);
  const entry = goodput.locator(".legend button").first();
  const before = await pixels(goodput);
  await entry.click();
  assert.equal(await entry.getAttribute("aria-pressed"), "false");
  await page.waitForTimeout(100);
  assert.notEqual(await pixels(goodput), before);
  await entry.click();
  assert.equal(await entry.getAttribute("aria-pressed"), "true");
});
await check("three lines that coincide are told apart without colours", async () => {
  const looks = await plot(/^Goodput/).locator(".legend .swatch").evaluateAll((swatches) => swatches.slice(0, 3).map((swatch) =>
    [...swatch.querySelectorAll("path")].map((path) => path.getAttribute("stroke-dasharray") ?? path.getAttribute("d")).join(" ")));
  assert.equal(new Set(looks).size, 3, looks.join("; "));
  // The last line drawn does not hide the others: without either of them the drawing is another.
  const goodput = plot(/^Goodput/);
  const all = await pixels(goodput);
  for (const place of [0, 1, 2]) {
    const entry = goodput.locator(".legend button").nth(place);
    await entry.click();
    await page.waitForTimeout(100);
    assert.notEqual(await pixels(goodput), all, `line ${place} is hidden by the others`);
    await entry.click();
  }
});
await check("a drag zooms all plots over time, a double click shows all again", async () => {
  const queue = plot(/^Queue/);
  const before = await pixels(plot(/^Goodput/));
  await drag(queue.locator(".u-over"), 0.2, 0.5);
  await until(() => !document.getElementById("zoom-out").disabled);
  await page.waitForTimeout(200);
  assert.notEqual(await pixels(plot(/^Goodput/)), before);
  await shot("report-zoomed");
  await queue.locator(".u-over").dblclick();
  await until(() => document.getElementById("zoom-out").disabled);
  await page.waitForTimeout(100);
  return JSON.stringify(await page.evaluate(() => window.weirZoomTimes()));
});
await check("keys zoom too", async () => {
  await page.locator("h1").click();
  await page.keyboard.press("+");
  await until(() => !document.getElementById("zoom-out").disabled);
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("0");
  await until(() => document.getElementById("zoom-out").disabled);
});
await check("plots are saved as PNG, SVG and CSV", async () => {
  const save = async (title, format) => {
    const button = plot(title).getByRole("button", { name: `as ${format}` });
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    return readFileSync(await download.path());
  };
  let rows = 0;
  for (const title of [/^Queue/, /^Completion times/, /99th/]) {
    assert.equal((await save(title, "PNG")).subarray(1, 4).toString(), "PNG");
    const drawing = (await save(title, "SVG")).toString();
    assert.match(drawing, /^<svg [^]*<path [^]*<\/svg>\n$/);
    assert.doesNotMatch(drawing, /NaN|undefined|Infinity/);
    const table = (await save(title, "CSV")).toString().trim().split("\n");
    assert.ok(table.length > 1 && table.every((row) => row.includes(",")));
    rows += table.length - 1;
  }
  return `${rows} rows`;
});
await check("axe finds nothing serious: light", accessible);
await page.evaluate(() => scrollTo(0, 0));
await shot("report");
await page.emulateMedia({ colorScheme: "dark" });
await check("dark is dark", async () => {
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.ok(ground.match(/\d+/g).slice(0, 3).every((part) => Number(part) < 60), ground);
});
await check("axe finds nothing serious: dark", accessible);
await shot("report-dark");
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 500, height: 900 });
await check("500 pixels are enough", async () => {
  await page.waitForTimeout(300);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 500);
  const wide = await page.locator(".plot canvas").evaluateAll((all) => all.filter((canvas) => canvas.getBoundingClientRect().right > 500).length);
  assert.equal(wide, 0);
});
await check("axe finds nothing serious: 500 pixels", accessible);
await page.locator("#figures").scrollIntoViewIfNeeded();
await shot("report-narrow");
await page.setViewportSize({ width: 1200, height: 1000 });

await check("2,000 groups and 64 ports fit, the worst ones first, and a field finds the others", async () => {
  const { size } = statSync(file("many/report.html"));
  assert.ok(size <= MOST_BYTES, `${size} bytes`);
  await open("many/report.html");
  const entries = () => plot(/^Goodput/).locator(".legend button").count();
  assert.ok(await entries() <= 16);
  await page.locator("details#groups summary").click();
  assert.match(await page.locator("details#groups").innerText(), /of 2000 groups shown/);
  await page.locator("details#groups input[type=search]").fill("g1234");
  const found = page.locator("details#groups .chooser input");
  await until(() => document.querySelectorAll("details#groups .chooser li").length === 1);
  const before = await entries();
  await found.check();
  await until((count) => [...document.querySelectorAll(".plot .legend")].some((legend) => legend.textContent.includes("g1234")), before);
  assert.match(await page.locator("details#ports").innerText(), /Ports/);
  const filter = page.getByRole("searchbox", { name: "Filter: Ports" });
  await filter.fill("leaf0");
  assert.match(await page.locator(".filter", { has: filter }).innerText(), / of \d+ rows/);
  await shot("report-many");
  return `${size} bytes`;
});
await check("axe finds nothing serious: many groups", accessible);

await check("two sets of seeds are compared, with verdicts, and drawn over each other", async () => {
  await open("compared.html");
  assert.match(await page.locator(".verdicts").innerText(), /differ[^]*cannot tell[^]*agree/);
  assert.ok(await page.locator("td.verdict").count() > 0);
  const legend = await plot(/^Goodput/).locator(".legend").innerText();
  assert.match(legend, /\(A\)[^]*\(B\)/);
  await shot("compared");
});
await check("axe finds nothing serious: a comparison", accessible);

await check("without JavaScript the tables are there", async () => {
  const plain = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 500, height: 900 } });
  const without = await plain.newPage();
  await without.goto(pathToFileURL(file("one/report.html")).href);
  assert.ok(await without.locator("table tbody tr").count() > 3);
  assert.match(await without.locator("noscript, body").first().innerText(), /Plots need JavaScript/);
  await plain.close();
});
await check("nothing is loaded from elsewhere", () =>
  assert.deepEqual(requests.filter((url) => !url.startsWith("file:") && !url.startsWith("blob:") && !url.startsWith("data:")), []));
await check("the browser has no complaints", () => assert.deepEqual(complaints, []));
await browser.close();
console.log(failed === 0 ? "all checks passed" : `${failed} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;
