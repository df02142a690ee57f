// A person before the page, in Chromium: what the tests of the page have in common.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

// A slow machine is no failure.
export const PATIENCE = 240_000;

/** Opens a browser for the page at this address. */
export async function begin(url) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, acceptDownloads: true });
  context.setDefaultTimeout(PATIENCE);
  return new Person(url, browser, await context.newPage());
}

class Person {
  failed = 0;
  /** What the browser complained about, and addresses elsewhere that the page asked for. */
  complaints = [];
  foreign = [];

  constructor(url, browser, page) {
    Object.assign(this, { url, browser, page });
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error") this.complaints.push(message.text()); });
    page.on("request", (request) => {
      const target = new URL(request.url());
      if (target.protocol.startsWith("http") && target.origin !== new URL(url).origin) this.foreign.push(request.url());
    });
  }

  /** Does something and prints a line about it. */
  async check(name, act) {
    try {
      const found = await act();
      console.log(`ok      ${name}${found === undefined ? "" : `: ${found}`}`);
    } catch (error) {
      this.failed++;
      console.log(`FAILED  ${name}\n${String(error.stack ?? error).replace(/^/gm, "        ")}`);
    }
  }

  async end() {
    await this.check("nothing is loaded from elsewhere", () => assert.deepEqual(this.foreign, []));
    await this.check("the browser has no complaints", () => assert.deepEqual(this.complaints.filter((text) => !text.includes("status of 422")), []));
    await this.browser.close();
    console.log(this.failed === 0 ? "all checks passed" : `${this.failed} checks failed`);
    process.exitCode = this.failed === 0 ? 0 : 1;
  }

  async open() {
    await this.page.goto(this.url);
    await this.page.waitForSelector("body.ready");
    await this.until(() => document.getElementById("status").textContent !== "");
    return this.page.title();
  }

  until(condition, argument) {
    return this.page.waitForFunction(condition, argument, { timeout: PATIENCE });
  }

  now() {
    return this.page.locator("#time").inputValue().then(Number);
  }

  settled() {
    return this.until(() => !document.getElementById("status").textContent.includes("Simulating"));
  }

  logged() {
    return this.page.locator("#log li").count();
  }

  /** Waits for so many entries of the log, and until the run is where it was. */
  async hasLogged(count) {
    await this.until((wanted) => document.querySelectorAll("#log li").length === wanted, count);
    await this.settled();
  }

  /** Steps on by a time, such as "5ms"; from there a change is made. */
  async step(by) {
    const { page } = this;
    await page.locator("#step-by").fill(by);
    await page.locator("#step-by").press("Enter");
    const before = await this.now();
    await page.locator("#step").click();
    await this.until((time) => Number(document.getElementById("time").value) > time, before);
    await this.settled();
    // All runs are there.
    await this.until(() => /Paused|Ended/.test(document.getElementById("status").textContent));
  }

  async drag(locator, from, to) {
    await locator.scrollIntoViewIfNeeded();
    const box = await locator.boundingBox();
    const y = box.y + box.height / 2;
    await this.page.mouse.move(box.x + box.width * from, y);
    await this.page.mouse.down();
    await this.page.mouse.move(box.x + box.width * to, y, { steps: 8 });
    await this.page.mouse.up();
  }

  /** Drags a knob by a part of its slider. */
  async dragKnob(slider, by) {
    await slider.evaluate((node) => { for (let box = node.closest("details"); box; box = box.parentElement.closest("details")) box.open = true; });
    const at = Number(await slider.inputValue()) / 1000;
    const to = at + by <= 0.97 ? at + by : at - by;
    const before = await this.logged();
    // The handle is inside the track: its centre never reaches the ends.
    await this.drag(slider, 0.02 + 0.96 * at, 0.02 + 0.96 * to);
    await this.hasLogged(before + 1);
  }

  knob(id) {
    return this.page.locator(`input[type=range][data-knob="${id}"]`);
  }

  /** Shows a part of the time in all plots and figures, by a drag over the first plot. */
  async zoom(from, to) {
    const { page } = this;
    await this.drag(page.locator(".plot .u-over").first(), from, to);
    await this.until(() => !document.getElementById("zoom-out").disabled);
    // The figures follow twice a second.
    await page.waitForTimeout(1500);
  }

  /** Cells of a table of figures by row and column; with two runs a list of both. */
  figures(table) {
    return this.page.locator("#compare table").nth(table).evaluate((node) => {
      const runs = node.tHead.rows.length;
      const titles = [...node.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
      return Object.fromEntries([...node.tBodies[0].rows].map((row) => {
        const name = row.cells[0].firstChild.textContent;
        const cells = [...row.cells].slice(1).map((cell) => cell.textContent);
        return [name, Object.fromEntries(titles.map((title, index) => [title, cells.slice(index * runs, (index + 1) * runs)]))];
      }));
    });
  }

  async downloaded(locator) {
    const [download] = await Promise.all([this.page.waitForEvent("download"), locator.click()]);
    return { name: download.suggestedFilename(), content: readFileSync(await download.path()) };
  }

  /** The hashes that the page shows for the chosen run, by file. */
  async digests() {
    await this.page.locator("#digest").click();
    await this.until(() => document.querySelectorAll("#digests dd").length > 0);
    const shown = await this.page.locator("#digests").evaluate((list) => [...list.children].map((node) => node.textContent));
    return Object.fromEntries(shown.flatMap((text, index) => (index % 2 === 0 ? [[text, shown[index + 1]]] : [])));
  }

  async accessible() {
    axe ??= readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate(() => window.axe.run());
    const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    assert.deepEqual(bad.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(", ")}`), []);
    return `${violations.length} lesser findings`;
  }
}

let axe;

/** The number before a unit or a percent sign. */
export const number = (text) => Number.parseFloat(text.replaceAll(",", ""));
