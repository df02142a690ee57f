// A list to choose ports or groups for the plots from: the worst first, with a field to search them.
import { element, setText } from "./element.ts";
import type { Unit } from "./protocol.ts";
import { readable } from "./quantity.ts";
import { MOST, type Selection } from "./selection.ts";

/** At most this many are listed; the search finds the others. */
const LISTED = 40;
/** With more than this there is a field to search them. */
const SEARCHED = 8;

/** `plural` names what is listed, `order` says how, and `unit` is that of the means. */
export function chooser(selection: Selection, plural: string, order: string, unit: Unit): HTMLElement {
  const { names } = selection.choice;
  const search = element("input", { type: "search", placeholder: `Search the ${plural}`, "aria-label": `Search the ${plural}`, hidden: names.length <= SEARCHED });
  const automatic = element("button", { type: "button", class: "small", hidden: names.length <= selection.choice.shown, click: () => selection.release() }, "The worst");
  const note = element("span");
  const list = element("ul", { class: "chooser" });
  const entries = names.map((name, index) => {
    const box = element("input", { type: "checkbox", change: () => selection.toggle(index) });
    const mean = element("span", { class: "value" });
    return { node: element("li", {}, element("label", {}, box, " ", name, " ", mean)), box, mean, name: name.toLowerCase() };
  });
  const refresh = (): void => {
    const words = search.value.toLowerCase().trim();
    const nodes = selection.worst.filter(({ index }) => entries[index]!.name.includes(words)).slice(0, LISTED).map(({ index, mean }) => {
      const entry = entries[index]!;
      entry.box.checked = selection.has(index);
      entry.box.disabled = !entry.box.checked && selection.chosen.length >= MOST;
      setText(entry.mean, readable(mean, unit, 3));
      return entry.node;
    });
    // Moving a node takes its focus away.
    const same = nodes.length === list.children.length && nodes.every((node, index) => list.children[index] === node);
    if (!same && !list.contains(document.activeElement)) list.replaceChildren(...nodes);
    automatic.disabled = !selection.isManual;
    setText(note, names.length === 0 ? `The scenario has no ${plural} to show.`
      : `${selection.chosen.length} of ${names.length} ${plural} shown, at most ${MOST}; ${order}.`);
  };
  search.addEventListener("input", refresh);
  selection.onChange(refresh);
  refresh();
  const title = `${plural.charAt(0).toUpperCase()}${plural.slice(1)} in the plots`;
  return element("details", { class: "section", id: plural },
    element("summary", {}, title), element("p", { class: "aside" }, note, " ", automatic), search, list);
}
