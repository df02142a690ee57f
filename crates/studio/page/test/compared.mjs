// Two experiments with repetitions, compared on a page of the studio.
//   node test/compared.mjs URL
import assert from "node:assert/strict";
import { begin } from "./person.mjs";

const [url] = process.argv.slice(2);
const person = await begin(url);
const { page } = person;

await person.check("the comparison opens", async () => {
  await page.goto(url);
  await page.waitForSelector("body.ready");
  return page.title();
});
await person.check("its means have intervals and a verdict", async () => {
  const titles = await page.locator("table thead").first().innerText();
  assert.match(titles, /95 % interval/);
  assert.match(titles, /verdict/);
  const rows = await page.locator("table tbody tr").count();
  assert.ok(rows > 10, `${rows} rows`);
  return `${rows} rows`;
});
await person.check("both are in the same plots, which zoom and are saved", async () => {
  const queue = page.locator(".plot").first();
  const lines = await queue.locator(".legend button").allInnerTexts();
  assert.ok(lines.some((line) => line.includes("(A)")) && lines.some((line) => line.includes("(B)")), lines.join("; "));
  await person.drag(queue.locator(".u-over"), 0.2, 0.6);
  await person.until(() => !document.getElementById("zoom-out").disabled);
  const { name, content } = await person.downloaded(queue.locator(".exports button", { hasText: "SVG" }));
  assert.ok(content.length > 1_000);
  return name;
});
await person.check("without the token it is refused", async () => {
  const answer = await fetch(new URL("/", url));
  assert.equal(answer.status, 403);
});
await person.end();
