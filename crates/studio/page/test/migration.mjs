// A link of `migration` fails at a click, and the flows move to other switches.
//   node test/migration.mjs URL
import assert from "node:assert/strict";
import { begin, number } from "./person.mjs";

const [url] = process.argv.slice(2);
const person = await begin(url);
const { page } = person;
const LINK = "link/switch2->server";

await person.check("migration opens", () => person.open());
await person.check("before the fault, switch 2 carries two clients", async () => {
  await person.step("100ms");
  await page.waitForTimeout(1500);
  const ports = await person.figures(1);
  assert.ok(number(ports["switch2->server"].Load[0]) > 1, JSON.stringify(ports));
  assert.ok(number(ports["switch3->server"].Load[0]) < 1, JSON.stringify(ports));
  return `switch2->server ${ports["switch2->server"].Load[0]}, switch3->server ${ports["switch3->server"].Load[0]}`;
});
await person.check("its link fails: the flows go on over the others", async () => {
  const button = (action) => page.locator(`button[data-knob="${LINK}"]`, { hasText: action });
  await button("Fail").evaluate((node) => { node.closest("details").open = true; });
  assert.equal(await button("Restore").getAttribute("aria-disabled"), "true");
  await button("Fail").click();
  await person.hasLogged(1);
  await person.until((id) => document.querySelector(`button[data-knob="${id}"]`).getAttribute("aria-disabled") === "true", LINK);
  assert.equal(await button("Restore").getAttribute("aria-disabled"), "false");
  await person.step("2s");
  await person.zoom(0.6, 0.99);
  const [groups, ports] = [await person.figures(0), await person.figures(1)];
  assert.equal(number(ports["switch2->server"].Load[0]), 0, JSON.stringify(ports));
  assert.ok(number(ports["switch3->server"].Load[0]) > 0, JSON.stringify(ports));
  for (const group of ["dcquic", "tcp-failover"]) assert.ok(number(groups[group].Goodput[0]) > 0, JSON.stringify(groups));
  return `then switch2->server ${ports["switch2->server"].Load[0]}, switch3->server ${ports["switch3->server"].Load[0]}; ` +
    `DCQUIC ${groups.dcquic.Goodput[0]}, TCP ${groups["tcp-failover"].Goodput[0]}`;
});
await person.end();
