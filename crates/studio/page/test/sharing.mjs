// The marking threshold of `buffer-sharing-1g`, dragged in a fork, moves the share of DCTCP and CUBIC. The fork is saved,
// and `weir run` on the file gives the bytes that the page names.
//   node test/sharing.mjs URL WEIR FOLDER
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { begin, number } from "./person.mjs";

const [url, weir, folder] = process.argv.slice(2);
const person = await begin(url);
const { page } = person;
const THRESHOLD = "queue/bottleneck/ecn_threshold";

await person.check("buffer-sharing opens", () => person.open());
await person.check("dragging the marking threshold of the fork moves the shares", async () => {
  await person.step("2s");
  await page.locator("#fork").click();
  await page.locator("#tab-b[aria-selected=true]").waitFor();
  await person.settled();
  await person.dragKnob(person.knob(THRESHOLD), 0.1);
  await person.step("5s");
  await person.zoom(0.5, 0.99);
  const { dctcp, cubic } = await person.figures(0);
  const [a, b] = dctcp.Share.map(number);
  assert.ok(b - a > 10, `DCTCP's share goes from ${a} % to ${b} %`);
  const change = await page.locator("#log li").last().innerText();
  return `${change}: DCTCP's share from ${dctcp.Share.join(" to ")}, CUBIC's from ${cubic.Share.join(" to ")}`;
});
await person.check("round trips, α and fairness are plotted beside", async () => {
  const titles = await page.locator(".plot:not([hidden]) h3").allInnerTexts();
  for (const title of ["Round-trip time by group", "Marked fraction α by group", "Fairness among flows"]) {
    assert.ok(titles.some((shown) => shown.startsWith(title)), titles.join("; "));
  }
});
await person.check("the saved fork, run by `weir run`, gives the bytes whose hashes the page shows", async () => {
  const { content } = await person.downloaded(page.locator("#save"));
  const file = join(folder, "forked.toml");
  writeFileSync(file, content);
  const digests = await person.digests();
  const out = join(folder, "forked");
  execFileSync(weir, ["run", file, "--no-variants", "--out", out], { stdio: ["ignore", "ignore", "inherit"] });
  const hash = (name) => createHash("sha256").update(readFileSync(join(out, name))).digest("hex");
  assert.deepEqual(Object.keys(digests).sort(), ["flows.parquet", "samples.parquet"]);
  for (const [name, shown] of Object.entries(digests)) assert.equal(shown, hash(name), name);
  const { summary } = await page.evaluate(() => fetch("api/digest?run=b").then((answer) => answer.json()));
  const written = JSON.parse(readFileSync(join(out, "summary.json"), "utf8"));
  for (const [key, value] of Object.entries(summary)) assert.deepEqual(written[key], value, key);
  const first = page.locator("#tab-a");
  await first.click();
  const unchanged = await person.digests();
  assert.notEqual(unchanged["samples.parquet"], digests["samples.parquet"]);
  return `samples.parquet ${digests["samples.parquet"]}, of the unchanged run ${unchanged["samples.parquet"]}`;
});
await person.end();
