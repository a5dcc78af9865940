// A plain table: sorted by a click on a heading, changed in place, long ones by parts.

import { button, h, setAttribute, setText } from "./dom.js";
import { plural } from "./text.js";

const ROWS_AT_FIRST = 200;
const MORE_ROWS_AT_ONCE = 500;

// `columns`: { title, value(row), shown(row)?, node(row)?, isText?, meaning?, csv? }; `csv` is the heading of the value there, false for none. A `node` is made anew where its text changes.
export class PlainTable {
  constructor(label, columns, options = {}) {
    this.columns = columns;
    this.options = options;
    this.rows = [];
    this.most = ROWS_AT_FIRST;
    this.sort = options.sort ?? null;
    this.head = h("tr");
    this.body = h("tbody");
    this.more = button("", () => this.showMore(), { class: "more", hidden: true });
    this.element = h("div", { class: "table-area" },
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
        h("table", null, h("caption", { class: "hidden" }, label), h("thead", null, this.head), this.body)),
      this.more);
    this.drawHead();
  }

  drawHead() {
    this.columns.forEach((column, at) => {
      const isSorted = this.sort?.at === at;
      const mark = isSorted ? (this.sort.isUp ? " ▲" : " ▼") : "";
      const head = this.head.children[at] ?? this.head.appendChild(this.headCell(column, at));
      setAttribute(head, "aria-sort", isSorted ? (this.sort.isUp ? "ascending" : "descending") : null);
      setText(head.lastMark, mark);
    });
  }

  headCell(column, at) {
    const mark = h("span", { "aria-hidden": "true" });
    // What has no title is no heading, and nothing is sorted by it.
    if (!column.title) return Object.assign(h("td"), { lastMark: mark });
    const inside = this.options.isFixed
      ? [column.title, mark]
      : [button([column.title, mark], () => this.sortBy(at), { title: column.meaning })];
    const head = h("th", { scope: "col", class: column.isText ? "text" : "number", title: column.meaning }, inside);
    head.lastMark = mark;
    return head;
  }

  sortBy(at) {
    const isUp = this.sort?.at === at ? !this.sort.isUp : Boolean(this.columns[at].isText);
    this.sort = { at, isUp };
    this.drawHead();
    this.draw();
  }

  showMore() {
    this.most += MORE_ROWS_AT_ONCE;
    this.draw();
  }

  setRows(rows) {
    this.rows = rows;
    this.draw();
  }

  sorted() {
    if (!this.sort) return this.rows;
    const { at, isUp } = this.sort;
    const value = this.columns[at].value;
    const sign = isUp ? 1 : -1;
    return [...this.rows].sort((one, other) => sign * compared(value(one), value(other)));
  }

  draw() {
    const shown = this.sorted().slice(0, this.most);
    while (this.body.children.length > shown.length) this.body.lastChild.remove();
    shown.forEach((row, at) => this.fill(this.body.children[at] ?? this.body.appendChild(this.newRow()), row));
    const rest = this.rows.length - shown.length;
    this.more.hidden = rest <= 0;
    setText(this.more, `Show more: ${plural(rest, "row")} left`);
  }

  newRow() {
    const cells = this.columns.map((column) => h(column.isHead ? "th" : "td", { scope: column.isHead ? "row" : null, class: column.isText ? "text" : "number" }));
    return h("tr", null, cells);
  }

  fill(element, row) {
    element.className = this.options.rowClass?.(row) ?? "";
    element.filter = this.options.filterOf?.(row) ?? null;
    this.columns.forEach((column, at) => {
      const cell = element.children[at];
      if (!column.node) return setText(cell, shownText(column, row));
      const mark = column.mark ? column.mark(row) : String(column.value(row));
      if (cell.mark === mark) return;
      cell.mark = mark;
      cell.replaceChildren(column.node(row) ?? "");
    });
  }

  // For CSV: all rows in the order that is shown.
  data() {
    const columns = this.columns.filter((column) => column.title && column.csv !== false);
    const rows = this.sorted().map((row) => columns.map((column) => column.value(row)));
    return { heads: columns.map((column) => column.csv ?? column.title), rows };
  }
}

function compared(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one ?? "").localeCompare(String(other ?? ""));
}

function shownText(column, row) {
  return column.shown ? column.shown(row) : String(column.value(row) ?? "");
}

// A share as number and bar, so that it is told by more than a colour.
export function shareNode(text, share) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  const fill = h("span");
  fill.style.width = `${Math.min(100, share * 100)}%`;
  bar.append(fill);
  return h("span", { class: "share" }, h("span", null, text), bar);
}

// The button that leaves only the samples of a row, which the key f does, too.
export function onlyButton(app, condition, label) {
  return button("only", () => app.filterBy(condition), { class: "only", title: `only samples of ${label} (f)`, "aria-label": `only samples of ${label}` });
}
