// Downloads: tables as CSV and JSON, pictures as SVG and PNG, all made in the page.

import { button, h } from "./dom.js";

const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "font-weight", "text-anchor", "opacity"];

function save(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Lines as spreadsheets take them (RFC 4180). A text that a spreadsheet would take for a formula gets an apostrophe.
function csvText(table) {
  const cell = (value) => {
    if (typeof value === "number") return String(value);
    const text = String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [table.heads, ...table.rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

// A picture as it stands, with the styles of the page written into it.
function pictureText(picture) {
  const copy = picture.cloneNode(true);
  const box = picture.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  const originals = [picture, ...picture.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, at) => {
    const style = getComputedStyle(originals[at]);
    for (const name of STYLED) {
      const value = style.getPropertyValue(name);
      // A hatch is named by the page's address there; in a file it is by its own.
      if (value) element.setAttribute(name, value.replace(/url\("?[^#]*#([^")]*)"?\)/, "url(#$1)"));
    }
    element.removeAttribute("class");
  });
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

async function savePng(name, picture) {
  const box = picture.viewBox.baseVal;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(pictureText(picture))}`;
  await image.decode();
  const canvas = h("canvas", { width: Math.ceil(box.width * 2), height: Math.ceil(box.height * 2) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(`${name}.png`, "image/png", blob));
}

// Buttons that save what a view shows. `what`: { table(): { heads, rows }, data(), picture() }, each if there is one.
export function downloadBar(name, what) {
  const press = (kind, run) => button(kind, run, { "aria-label": `Download as ${kind}` });
  return h("p", { class: "downloads", role: "group", "aria-label": "Downloads" },
    h("span", null, "Download "),
    what.table && press("CSV", () => save(`${name}.csv`, "text/csv", csvText(what.table()))),
    what.data && press("JSON", () => save(`${name}.json`, "application/json", `${JSON.stringify(what.data(), null, 1)}\n`)),
    what.picture && press("SVG", () => what.picture() && save(`${name}.svg`, "image/svg+xml", pictureText(what.picture()))),
    what.picture && press("PNG", () => what.picture() && savePng(name, what.picture())));
}
