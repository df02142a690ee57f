// The list of measured ports: the worst first, with a field to search them.
import { byId, element, setText } from "./element.ts";
import type { Model } from "./model.ts";
import { readable } from "./quantity.ts";
import { MOST_PORTS, type Selection } from "./selection.ts";

/** At most this many ports are listed; the search finds the others. */
const LISTED = 40;

export function ports(model: Model, selection: Selection): void {
  const list = byId<HTMLUListElement>("port-list");
  const search = byId<HTMLInputElement>("port-search");
  const automatic = byId<HTMLButtonElement>("port-worst");
  const { ports: known } = model.scenario;
  search.hidden = known.length <= 8;
  const entries = known.map((port, index) => {
    const box = element("input", { type: "checkbox", change: () => { selection.toggle(index); refresh(); } });
    const mean = element("span", { class: "value" });
    return { node: element("li", {}, element("label", {}, box, " ", port.name, " ", mean)), box, mean, name: port.name.toLowerCase() };
  });
  const refresh = (): void => {
    const words = search.value.toLowerCase().trim();
    const order = selection.worst.filter(({ port }) => entries[port]!.name.includes(words)).slice(0, LISTED);
    const nodes = order.map(({ port, mean }) => {
      const entry = entries[port]!;
      entry.box.checked = selection.has(port);
      entry.box.disabled = !entry.box.checked && selection.ports.length >= MOST_PORTS;
      setText(entry.mean, readable(mean, "bytes", 3));
      return entry.node;
    });
    // Moving a node takes its focus away.
    const same = nodes.length === list.children.length && nodes.every((node, index) => list.children[index] === node);
    if (!same && !list.contains(document.activeElement)) list.replaceChildren(...nodes);
    automatic.disabled = !selection.isManual;
    const all = entries.length;
    setText(byId("port-note"), all === 0 ? "No port of this scenario is measured."
      : `${selection.ports.length} of ${all} shown, at most ${MOST_PORTS}; by mean queue, the largest first.`);
  };
  search.addEventListener("input", refresh);
  automatic.addEventListener("click", () => selection.release());
  automatic.hidden = known.length <= 4;
  selection.onChange(refresh);
  refresh();
}
