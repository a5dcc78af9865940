// Elements of the page and of its pictures, made of nodes alone: a text never becomes markup.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

// An element. Properties that are functions listen, the others are attributes; null leaves one out.
export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return filled(document.createElementNS(SVG_NAMESPACE, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Changes a text only where it differs, so that what did not change is not laid out again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

export function button(text, onClick, properties = {}) {
  return h("button", { type: "button", click: onClick, ...properties }, text);
}

// A choice of one of several words, as a labelled select.
export function choice(label, options, value, onChange) {
  const select = h("select", { change: () => onChange(select.value) });
  for (const [key, text] of options) {
    select.append(h("option", { value: key, selected: key === value }, text));
  }
  return h("label", { class: "field" }, h("span", null, label), select);
}

// What a view says where it has nothing to show.
export function sentence(text, kind = "") {
  return h("p", { class: `sentence ${kind}`, role: kind === "failed" ? "alert" : null }, text);
}
