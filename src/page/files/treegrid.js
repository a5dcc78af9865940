// A tree table of any length: only the rows that are seen are in the page, and focus stays with its row.

import { h, setAttribute, setText } from "./dom.js";

const ROW_PX = 26;
const MORE_ROWS = 8;

// `options`: { label, onSort(name), onOpen(row), onFold(row, isOpen), nameTitle, linkOf(row) }.
export class TreeGrid {
  constructor(options) {
    this.options = options;
    this.rows = [];
    this.places = new Map();
    this.elements = new Map();
    this.free = [];
    this.activeKey = null;
    this.head = h("div", { role: "row", class: "grid-row grid-head", "aria-rowindex": 1 });
    this.body = h("div", { role: "rowgroup", class: "grid-body" });
    this.element = h("div", {
      role: "treegrid", class: "treegrid", "aria-label": options.label,
      scroll: () => this.soon(), keydown: (event) => this.onKey(event), focusin: (event) => this.onFocus(event),
      click: (event) => this.onClick(event), dblclick: (event) => this.onDoubleClick(event),
    }, h("div", { role: "rowgroup", class: "grid-top" }, this.head), this.body);
    this.watcher = new ResizeObserver(() => this.soon());
    this.watcher.observe(this.element);
  }

  stop() {
    this.watcher.disconnect();
  }

  soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw(false);
    });
  }

  // `columns` as in COLUMNS; `sort` is { name, isUp }.
  setColumns(columns, sort) {
    const shape = JSON.stringify([columns.map((column) => column.name), sort, this.options.nameTitle]);
    if (shape === this.shape) return;
    const isOther = this.shape === undefined || JSON.stringify(columns) !== JSON.stringify(this.columns);
    const focused = this.head.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    this.shape = shape;
    this.columns = columns;
    this.element.style.setProperty("--columns", `${columns.map((column) => column.width).join(" ")} minmax(9em, 1fr)`);
    this.element.style.setProperty("--least", `calc(${columns.map((column) => column.width).join(" + ")} + 9em + ${columns.length * 10 + 16}px)`);
    const heads = columns.map((column) => this.headCell(column.name, column.title, column.meaning, sort));
    this.head.replaceChildren(...heads, this.headCell("name", this.options.nameTitle ?? "OBJECT", "its name", sort));
    setAttribute(this.element, "aria-colcount", columns.length + 1);
    if (focused) this.head.querySelector(`[data-name="${focused}"]`)?.focus();
    if (isOther) {
      this.elements.forEach((element) => element.remove());
      this.elements.clear();
      this.free = [];
    }
  }

  headCell(name, title, meaning, sort) {
    const isSorted = sort.name === name;
    const mark = isSorted ? (sort.isUp ? " ▲" : " ▼") : "";
    const press = h("button", {
      type: "button", tabindex: 0, "data-name": name, title: meaning, click: () => this.options.onSort(name),
    }, title, h("span", { "aria-hidden": "true" }, mark));
    const order = isSorted ? (sort.isUp ? "ascending" : "descending") : "none";
    return h("div", { role: "columnheader", class: `cell ${name}`, "aria-sort": order }, press);
  }

  // `write(cells, row)` fills the cells of a row, the name's label excepted.
  setRows(rows, write) {
    this.rows = rows;
    this.write = write;
    this.places = new Map(rows.map((row, at) => [row.node.key, at]));
    if (!this.places.has(this.activeKey)) this.activeKey = rows[Math.min(this.activeAt ?? 0, rows.length - 1)]?.node.key ?? null;
    setAttribute(this.element, "aria-rowcount", rows.length + 1);
    this.body.style.height = `${rows.length * ROW_PX}px`;
    this.draw(true);
  }

  draw(isNew) {
    const top = this.element.scrollTop;
    const seen = Math.ceil((this.element.clientHeight || 600) / ROW_PX);
    const first = Math.max(0, Math.floor(top / ROW_PX) - MORE_ROWS);
    const last = Math.min(this.rows.length, first + seen + 2 * MORE_ROWS);
    const wanted = new Map();
    this.activeAt = this.places.get(this.activeKey);
    if (this.activeAt < first) wanted.set(this.activeKey, this.activeAt);
    for (let at = first; at < last; at += 1) wanted.set(this.rows[at].node.key, at);
    if (this.activeAt >= last) wanted.set(this.activeKey, this.activeAt);
    for (const [key, element] of this.elements) {
      if (wanted.has(key)) continue;
      this.elements.delete(key);
      // Left in its place it would stand between two that follow each other, and all after it would be moved.
      element.remove();
      this.free.push(element);
    }
    const inOrder = [];
    for (const [key, at] of wanted) {
      const known = this.elements.get(key);
      const element = known ?? this.free.pop() ?? this.newRow();
      this.elements.set(key, element);
      if (isNew || !known) this.fill(element, this.rows[at], at);
      setAttribute(element, "tabindex", key === this.activeKey ? 0 : -1);
      inOrder.push(element);
    }
    this.free.length = Math.min(this.free.length, 60);
    this.order(inOrder);
  }

  // Rows follow each other in the page as on the screen. The one with focus is never moved: it would lose it.
  order(elements) {
    if (!elements.length) return;
    const focused = document.activeElement?.closest?.(".grid-row");
    const middle = Math.max(0, elements.indexOf(focused));
    if (elements[middle].parentNode !== this.body) this.body.append(elements[middle]);
    for (let at = middle - 1; at >= 0; at -= 1) {
      const next = elements[at + 1];
      if (next.previousSibling !== elements[at]) this.body.insertBefore(elements[at], next);
    }
    for (let at = middle + 1; at < elements.length; at += 1) {
      const before = elements[at - 1];
      if (before.nextSibling !== elements[at]) this.body.insertBefore(elements[at], before.nextSibling);
    }
  }

  newRow() {
    const cells = this.columns.map((column) => h("div", { role: "gridcell", class: `cell ${column.name}` }));
    const fold = h("button", { type: "button", class: "fold", tabindex: -1 });
    const link = h("a", { tabindex: -1, class: "name" });
    const name = h("div", { role: "rowheader", class: "cell name" }, fold, link);
    const element = h("div", { role: "row", class: "grid-row" }, cells, name);
    Object.assign(element, { cells, fold, link, nameCell: name });
    return element;
  }

  fill(element, row, at) {
    element.key = row.node.key;
    element.style.transform = `translateY(${at * ROW_PX}px)`;
    setAttribute(element, "aria-rowindex", at + 2);
    setAttribute(element, "aria-level", row.level);
    setAttribute(element, "aria-posinset", row.position);
    setAttribute(element, "aria-setsize", row.size);
    setAttribute(element, "aria-expanded", row.hasParts ? row.isOpen : null);
    element.nameCell.style.paddingLeft = `${(row.level - 1) * 18}px`;
    element.fold.hidden = !row.hasParts;
    setText(element.fold, row.isOpen ? "▾" : "▸");
    setAttribute(element.fold, "aria-label", row.isOpen ? "fold" : "unfold");
    element.nameCell.classList.toggle("leaf", !row.hasParts);
    const href = this.options.linkOf(row);
    setAttribute(element.link, "href", href);
    this.write(element, row);
  }

  active() {
    return this.rows[this.places.get(this.activeKey)];
  }

  // Goes to a row, and scrolls so far that it is seen.
  goTo(at, isFocused = true) {
    const place = Math.max(0, Math.min(this.rows.length - 1, at));
    if (!this.rows[place]) return;
    this.activeKey = this.rows[place].node.key;
    const top = place * ROW_PX;
    const room = this.element.clientHeight - this.head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_PX > this.element.scrollTop + room) this.element.scrollTop = top + ROW_PX - room;
    this.draw(false);
    if (isFocused) this.elements.get(this.activeKey)?.focus({ preventScroll: true });
  }

  step(count) {
    this.goTo((this.places.get(this.activeKey) ?? 0) + count);
  }

  fold(isOpen) {
    const row = this.active();
    if (!row) return;
    const at = this.places.get(this.activeKey);
    if (row.hasParts && row.isOpen !== isOpen) this.options.onFold(row, isOpen);
    else if (isOpen && row.hasParts) this.goTo(at + 1);
    else if (!isOpen && row.level > 1) {
      for (let place = at - 1; place >= 0; place -= 1) {
        if (this.rows[place].level < row.level) return this.goTo(place);
      }
    }
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.body.contains(event.target)) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_PX) - 2);
    const steps = {
      ArrowDown: () => this.step(1), ArrowUp: () => this.step(-1), PageDown: () => this.step(page), PageUp: () => this.step(-page),
      Home: () => this.goTo(0), End: () => this.goTo(this.rows.length - 1),
      ArrowRight: () => this.fold(true), ArrowLeft: () => this.fold(false),
      Enter: () => this.open(),
    };
    if (!steps[event.key]) return;
    event.preventDefault();
    steps[event.key]();
  }

  open() {
    const row = this.active();
    if (row) this.options.onOpen(row);
  }

  onFocus(event) {
    const element = event.target.closest?.(".grid-body .grid-row");
    if (!element || element.key === this.activeKey) return;
    this.elements.get(this.activeKey)?.setAttribute("tabindex", "-1");
    this.activeKey = element.key;
    element.setAttribute("tabindex", "0");
  }

  onClick(event) {
    const element = event.target.closest(".grid-body .grid-row");
    if (!element) return;
    const row = this.rows[this.places.get(element.key)];
    if (event.target === element.fold && row) {
      this.activeKey = element.key;
      this.options.onFold(row, !row.isOpen);
    }
    if (event.target !== element.link) element.focus({ preventScroll: true });
  }

  onDoubleClick(event) {
    if (event.target.closest(".grid-body .grid-row") && !event.target.closest("button")) this.open();
  }
}
