// A field above each long table that leaves the rows with its words.
import { element, setText } from "../element.ts";

/** Tables with more rows have a field. */
const LONG = 12;

export function filterTables(): void {
  for (const box of document.querySelectorAll<HTMLElement>(".tall")) {
    const rows = [...box.querySelectorAll<HTMLTableRowElement>("tbody tr")];
    if (rows.length <= LONG) continue;
    const name = box.getAttribute("aria-label") ?? "rows";
    const texts = rows.map((row) => row.textContent!.toLowerCase());
    const search = element("input", { type: "search", placeholder: `Filter: ${name}`, "aria-label": `Filter: ${name}` });
    const count = element("span", { class: "aside", role: "status" });
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/);
      let shown = 0;
      rows.forEach((row, index) => {
        row.hidden = !words.every((word) => texts[index]!.includes(word));
        if (!row.hidden) shown++;
      });
      setText(count, `${shown} of ${rows.length} rows`);
    });
    box.before(element("div", { class: "filter" }, search, count));
  }
}
