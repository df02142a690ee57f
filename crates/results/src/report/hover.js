// Values under the pointer. Without a script the plots only lack these.
for (const svg of document.querySelectorAll("svg.plot[data-area]")) {
  const [left, right, top, bottom] = svg.dataset.area.split(" ").map(Number);
  const axis = (text) => { const [end, unit] = text.split(" "); return { end: Number(end), unit }; };
  const x = axis(svg.dataset.x), y = axis(svg.dataset.y);
  const lines = [...svg.querySelectorAll("polyline.line")];
  const cursor = svg.querySelector(".cursor");
  const make = (name, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return node;
  };
  // The last point at or before `at`, or the first.
  const nearest = (points, at) => {
    let low = 0, high = points.numberOfItems - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (points.getItem(middle).x <= at) low = middle; else high = middle - 1;
    }
    return points.getItem(low);
  };
  const short = (value) => String(Number(value.toPrecision(4)));
  svg.addEventListener("pointerleave", () => cursor.replaceChildren());
  svg.addEventListener("pointermove", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const at = Math.min(Math.max(place.x, left), right);
    const time = (at - left) / (right - left) * x.end;
    const rows = [`${short(time)} ${x.unit}`];
    for (const line of lines) {
      if (line.points.numberOfItems === 0) continue;
      const value = (bottom - nearest(line.points, at).y) / (bottom - top) * y.end;
      rows.push(`${line.dataset.name}: ${short(value)} ${y.unit}`);
    }
    cursor.replaceChildren(make("line", { x1: at, x2: at, y1: top, y2: bottom }));
    const width = 7 * Math.max(...rows.map((row) => row.length)) + 12;
    const start = at + width + 8 < right ? at + 8 : at - width - 8;
    cursor.append(make("rect", { x: start, y: top, width, height: 16 * rows.length + 6, rx: 3 }));
    rows.forEach((row, index) =>
      cursor.append(make("text", { class: "note", x: start + 6, y: top + 16 * (index + 1) }, row)));
  });
}
