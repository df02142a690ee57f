// Builds elements of the page.

type Attributes = Record<string, string | number | boolean | undefined | ((event: never) => void)>;
type Child = globalThis.Node | string;

function fill(node: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value as EventListener);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children);
}

/** An HTML element. A function as an attribute listens to the event of that name. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const node = document.createElement(name);
  fill(node, attributes, children);
  return node;
}

/** An SVG element. */
export function drawn<Name extends keyof SVGElementTagNameMap>(
  name: Name, attributes: Attributes = {}, ...children: Child[]
): SVGElementTagNameMap[Name] {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(node, attributes, children);
  return node;
}

/** Sets text only where it differs, which keeps selections and saves layouts. */
export function setText(node: globalThis.Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** The page's element with this id. */
export function byId<Kind extends HTMLElement = HTMLElement>(id: string): Kind {
  const node = document.getElementById(id);
  if (!node) throw new Error(`index.html lacks #${id}`);
  return node as Kind;
}

/** Lets the browser save `content` as a file. */
export function download(name: string, content: Blob | string, type = "text/plain"): void {
  const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
