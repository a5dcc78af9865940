// The objects: a tree table of data objects and their members, live.

import { h, setAttribute, setText, svg, sentence, button } from "./dom.js";
import { percent, plural, ratio, visible } from "./text.js";
import { conditionOf } from "./source.js";
import { isNarrow, narrowed } from "./route.js";
import { trendPath } from "./trend.js";
import { COLUMNS, clockOf, columnsShown, isColumnMeasured } from "./column.js";
import { treeOfAnswer, treeOfSnapshot, treeRows } from "./tree.js";
import { TreeGrid } from "./treegrid.js";
import { downloadBar } from "./download.js";
import { ASK_OFTEN_MS, Asking, failureText } from "./asking.js";

const MAX_ROWS = 10000;
const BAR_PX = 54;

// Keys that people group by, and what each tells.
const GROUP_KEYS = [
  ["variable", "the variable by which an object was reached"], ["type", "the outermost named type"],
  ["thread", "the thread, by its number"], ["comm", "the thread, by its name"], ["process", "the process"],
  ["function", "the function"], ["line", "the source line"], ["module", "the program or library"],
  ["access", "load, store, load_store, prefetch"], ["cpu", "the CPU"], ["node", "the NUMA node of the CPU"],
  ["cgroup", "the control group"], ["second", "the second"], ["event", "the event"],
  ["level", "where the data were found"], ["latency_bucket", "core cycles, between powers of two"],
  ["evidence", "what the name rests on"], ["reason", "the reason that there is no name"],
  ["instance", "which of many objects of a type, by its address"], ["index", "the element of an array"],
  ["cacheline", "the line of 64 bytes"], ["page", "the page of 4 KiB"], ["alignment", "the offset of an instance in its line"],
];

export function objectsView(app) {
  return new ObjectsView(app);
}

class ObjectsView {
  constructor(app) {
    this.app = app;
    this.title = "Objects";
    this.answer = null;
    this.grid = new TreeGrid({
      label: "Data objects", linkOf: (row) => this.linkOf(row),
      onSort: (name) => this.sortBy(name), onOpen: (row) => app.go(this.linkOf(row)),
      onFold: (row, isOpen) => this.foldRow(row, isOpen),
    });
    this.asking = new Asking((answer, key) => this.onAnswer(answer, key), (message, status) => this.onFailure(message, status));
    this.note = h("p", { class: "note" });
    this.problem = h("div");
    this.tools = h("div", { class: "tools" });
    this.element = h("div", { class: "objects-view" }, this.tools, this.problem, this.grid.element, this.note,
      downloadBar("objects", { table: () => this.table(), data: () => this.data() }));
    this.drawTools();
    this.keys = {
      s: () => this.nextSort(1), S: () => this.nextSort(-1), i: () => this.invert(), y: () => this.toggle("list", "flat"),
      n: () => this.toggle("names", "descriptor"), v: () => this.toggle("variables", "apart"), "*": () => this.foldAll(),
      "+": () => this.grid.fold(true), "-": () => this.grid.fold(false), g: () => this.groupField.focus(),
      o: () => this.openColumns(), f: () => this.filterHere(), j: () => this.grid.step(1), k: () => this.grid.step(-1),
      G: () => this.grid.goTo(this.grid.rows.length - 1), l: () => this.openActive("layout"), Enter: () => this.grid.open(),
      c: () => this.openCode(), ArrowDown: () => this.grid.step(0), ArrowUp: () => this.grid.step(0),
    };
  }

  stop() {
    this.asking.stop();
    this.grid.stop();
  }

  focus() {
    this.grid.goTo(this.grid.activeAt ?? 0);
  }

  drawTools() {
    const params = this.app.route.params;
    const press = (name, value, text, title) => button(text, () => this.toggle(name, value), { "aria-pressed": String(params.get(name) === value), title });
    this.groupField = h("input", {
      list: "group-keys", value: params.get("group") ?? "", placeholder: "object", size: 14, autocomplete: "off", spellcheck: "false",
      title: "a key, or any expression over keys (g)", change: () => this.app.go(this.app.link("objects", { group: this.groupField.value.trim() || null })),
    });
    this.columnBox = h("details", { class: "columns" }, h("summary", { title: "choose the columns (o)" }, "Columns"));
    this.tools.replaceChildren(
      h("label", { class: "field" }, h("span", null, "Group by"), this.groupField),
      h("datalist", { id: "group-keys" }, GROUP_KEYS.map(([key, text]) => h("option", { value: key }, text))),
      press("list", "flat", "One list", "members below their aggregate, or one list (y)"),
      press("names", "descriptor", "Descriptors", "names of the source, or descriptors by type (n)"),
      press("variables", "apart", "Variables apart", "tell a type's variables apart (v)"),
      button("Fold all", () => this.foldAll(), { title: "hide the members of all rows, or show them (*)" }),
      this.columnBox);
  }

  drawColumnBox() {
    if (this.columnBox.children.length > 1 || !this.app.snapshot) return;
    const snapshot = this.app.snapshot;
    const total = snapshot.objects[0]?.metrics.all ?? {};
    const shown = columnsShown(snapshot, this.app.route.params.get("columns"), this.app.isNarrowScreen());
    const boxes = COLUMNS.map((column) => {
      const isMeasured = isColumnMeasured(column, total, snapshot);
      const box = h("input", { type: "checkbox", checked: shown.includes(column), disabled: !isMeasured, change: () => this.chooseColumns(boxes) });
      box.column = column.name;
      return box;
    });
    this.columnBox.append(h("fieldset", null, h("legend", { class: "hidden" }, "Columns"), boxes.map((box, at) => h("label", null, box, " ",
      h("b", null, COLUMNS[at].title), ` ${box.disabled ? "nothing here measures it" : COLUMNS[at].meaning}`))));
  }

  chooseColumns(boxes) {
    const names = boxes.filter((box) => box.checked).map((box) => box.column);
    this.app.go(this.app.link("objects", { columns: names.join(",") || "share" }), true);
  }

  openColumns() {
    this.columnBox.open = !this.columnBox.open;
    this.columnBox.querySelector("summary").focus();
  }

  toggle(name, value) {
    const isSet = this.app.route.params.get(name) === value;
    this.app.go(this.app.link("objects", { [name]: isSet ? null : value }));
  }

  sorting() {
    const params = this.app.route.params;
    const snapshot = this.app.snapshot;
    const usual = snapshot && clockOf(snapshot) ? "time" : "share";
    return { name: params.get("sort") ?? usual, isUp: params.has("up") };
  }

  sortBy(name) {
    const now = this.sorting();
    const isUp = now.name === name ? !now.isUp : name === "name";
    this.app.go(this.app.link("objects", { sort: name, up: isUp ? "1" : null }), true);
  }

  nextSort(step) {
    const names = [...this.columns.map((column) => column.name), "name"];
    const at = names.indexOf(this.sorting().name);
    const name = names[(at + step + names.length) % names.length];
    this.app.go(this.app.link("objects", { sort: name, up: name === "name" ? "1" : null }), true);
  }

  invert() {
    const { name, isUp } = this.sorting();
    this.app.go(this.app.link("objects", { sort: name, up: isUp ? null : "1" }), true);
  }

  foldRow(row, isOpen) {
    if (isOpen) this.app.folded.delete(row.node.key);
    else this.app.folded.add(row.node.key);
    this.draw();
  }

  foldAll() {
    const isAnyOpen = this.grid.rows.some((row) => row.isOpen);
    this.app.folded.clear();
    if (isAnyOpen) for (const row of this.grid.rows) if (row.hasParts) this.app.folded.add(row.node.key);
    this.draw();
  }

  linkOf(row) {
    const node = row.node;
    if (node.line) return this.app.link("object", { object: node.line.id });
    return this.app.link("objects", this.filterChange(this.conditionOfRow(row)));
  }

  filterChange(condition) {
    return condition ? { where: [...this.app.route.params.getAll("where"), condition], group: null } : {};
  }

  conditionOfRow(row) {
    const node = row.node;
    if (node.line) return conditionOf(node.line);
    if (node.kind !== "group") return null;
    const isAddress = typeof node.value === "string" && /^0x[0-9a-f]+$/.test(node.value);
    const value = node.value === null || node.value === undefined ? "null" : isAddress ? node.value : JSON.stringify(node.value);
    return /^[a-z_0-9]+$/.test(node.group) ? `${node.group} == ${value}` : `(${node.group}) == ${value}`;
  }

  filterHere() {
    const row = this.grid.active();
    const condition = row && this.conditionOfRow(row);
    if (condition) this.app.filterBy(condition);
  }

  openActive(view) {
    const line = this.grid.active()?.node.line;
    if (line) this.app.go(this.app.link(view, { object: line.id }));
  }

  openCode() {
    const line = this.grid.active()?.node.line;
    this.app.go(this.app.link("code", { function: line?.scope?.[0]?.function ?? null }));
  }

  update(isOtherRoute) {
    if (isOtherRoute) this.drawToolsAgain();
    const { app } = this;
    if (!isNarrow(app.route)) {
      this.asking.stop();
      this.answer = null;
      this.problem.replaceChildren();
      return this.draw();
    }
    const question = objectsQuestion(app);
    const key = JSON.stringify([app.route.session, question]);
    if (key !== this.answerKey) {
      this.answer = null;
      this.problem.replaceChildren(sentence("The history is asked for these samples …"));
    }
    this.asking.ask(app, key, (signal) => app.source.query(app.route.session, question, signal), ASK_OFTEN_MS);
    if (this.answer) this.draw();
    else this.drawNothing();
  }

  drawToolsAgain() {
    const isOpen = this.columnBox.open;
    const focused = this.tools.contains(document.activeElement) ? [...this.tools.querySelectorAll("button,input,summary")].indexOf(document.activeElement) : -1;
    this.drawTools();
    this.drawColumnBox();
    this.columnBox.open = isOpen;
    if (focused >= 0) this.tools.querySelectorAll("button,input,summary")[focused]?.focus();
  }

  onAnswer(answer, key) {
    this.answer = answer;
    this.answerKey = key;
    this.problem.replaceChildren();
    this.draw();
  }

  onFailure(message, status) {
    this.answer = null;
    this.problem.replaceChildren(sentence(failureText(message, status, "the history's answer"), "failed"));
    this.drawNothing();
  }

  drawNothing() {
    this.showRows([], { samples: 0 });
    setText(this.note, "");
  }

  draw() {
    const { app } = this;
    const { snapshot } = app;
    if (!snapshot) return;
    this.drawColumnBox();
    const window = app.window();
    const params = app.route.params;
    const tree = this.answer
      ? treeOfAnswer(snapshot, this.answer, params.get("group"), params.has("variables"))
      : treeOfSnapshot(snapshot, window);
    this.showRows(tree.roots, tree.total);
    this.drawNote();
  }

  showRows(roots, total) {
    const { app } = this;
    const { snapshot } = app;
    if (!snapshot) return;
    const params = app.route.params;
    const window = app.window();
    const scale = { clock: clockOf(snapshot), total: total.samples, seconds: Math.min(windowSeconds(window), snapshot.elapsed_ns / 1e9) };
    this.columns = columnsShown(snapshot, params.get("columns"), app.isNarrowScreen());
    // An answer of the history has neither: it sums a span, and tells no evidence.
    if (isNarrow(app.route)) this.columns = this.columns.filter((column) => column.name !== "trend" && column.name !== "evidence");
    const sort = this.sorting();
    this.grid.options.nameTitle = params.get("group") ? visible(params.get("group"), 40).toUpperCase() : "OBJECT";
    this.grid.setColumns(this.columns, sort);
    const rows = treeRows(roots, {
      isFlat: params.get("list") === "flat", names: params.get("names"), text: params.get("text"), folded: app.folded,
      compare: comparing(sort, scale),
    });
    this.scale = scale;
    this.grid.setRows(rows, (element, row) => this.write(element, row));
    if (!rows.length && !this.problem.firstChild) this.problem.replaceChildren(sentence(this.emptyText()));
    else if (rows.length && this.problem.firstChild?.className === "sentence ") this.problem.replaceChildren();
  }

  emptyText() {
    const params = this.app.route.params;
    if (params.has("text")) return `No object of this window has “${visible(params.get("text"), 80)}” in its name.`;
    if (isNarrow(this.app.route)) return "No sample is left by the filters in this span.";
    return "No samples yet in this window: the target may be asleep, or has only begun.";
  }

  write(element, row) {
    const { node } = row;
    this.columns.forEach((column, at) => {
      const cell = element.cells[at];
      if (column.name === "share") writeShare(cell, percent(node.metrics.samples, this.scale.total), ratio(node.metrics.samples, this.scale.total));
      else if (column.name === "trend") this.writeTrend(cell, node);
      else if (column.name === "line") setText(cell, visible(node.line?.scope?.[0]?.function ?? "", 60));
      else setText(cell, column.shown(node.metrics, this.scale));
    });
    const label = visible(node.label);
    setText(element.link, label || "(no name)");
    setAttribute(element.link, "title", visible(node.descriptor));
  }

  writeTrend(cell, node) {
    if (!cell.path) {
      cell.path = svg("path");
      cell.append(svg("svg", { viewBox: "0 0 60 16", width: 60, height: 16, "aria-hidden": "true", class: "spark" }, cell.path));
    }
    const cells = node.line && !this.answer ? this.app.trend.cells(node.line.id) : [];
    setAttribute(cell.path, "d", trendPath(cells));
  }

  drawNote() {
    const { snapshot } = this.app;
    const parts = [`${plural(this.grid.rows.length, "row")}.`];
    if (this.answer) {
      const held = this.answer.rows_held === this.answer.rows_of_span ? "all" : `the newest ${this.answer.rows_held}`;
      parts.push(`The filters keep ${plural(this.answer.total.samples, "sample")}; of ${this.answer.rows_of_span} of the span the history holds ${held}.`);
      if (this.answer.truncated) parts.push(`Only the first ${MAX_ROWS} rows are here.`);
    } else if (snapshot.truncated) parts.push("There are more objects than the snapshot has.");
    setText(this.note, parts.join(" "));
  }

  table() {
    const heads = ["object", "descriptor", "level", ...this.columns.filter((column) => column.name !== "trend").map((column) => column.title.toLowerCase())];
    const rows = this.grid.rows.map(({ node, level }) => [node.name, node.descriptor, level,
      ...this.columns.filter((column) => column.name !== "trend").map((column) => column.shown(node.metrics, this.scale))]);
    return { heads, rows };
  }

  data() {
    return this.answer ?? this.app.snapshot;
  }
}

// The question for the objects that the filters of the address leave, put together as it says.
export function objectsQuestion(app) {
  const { params } = app.route;
  const key = params.get("group") ?? (params.has("variables") ? "variable" : null);
  const window = app.window();
  const question = narrowed(app.route, { by: key ? [key, "object"] : ["object"], limit: MAX_ROWS });
  if (!question.span && window !== "all") question.span = `-${window}..`;
  return question;
}

// Seconds of a window such as `10s`; `all` has no end.
export function windowSeconds(window) {
  return window === "all" ? Infinity : parseInt(window, 10);
}

function comparing(sort, scale) {
  const sign = sort.isUp ? 1 : -1;
  const byName = (one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0);
  if (sort.name === "name") return (one, other) => sign * byName(one, other);
  const column = COLUMNS.find((one) => one.name === sort.name) ?? COLUMNS[1];
  return (one, other) => sign * (column.value(one.metrics, scale) - column.value(other.metrics, scale)) || byName(one, other);
}

function writeShare(cell, text, share) {
  setText(cell, text);
  // The bar is a ground of the cell and no element: fewer elements scroll faster.
  cell.style.backgroundSize = `${(Math.min(1, share) * BAR_PX).toFixed(1)}px 10px`;
}
