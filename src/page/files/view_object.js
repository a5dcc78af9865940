// One object: its sums over all windows, what is around it and in it, the code and the threads that touch it.

import { button, h, setText, sentence } from "./dom.js";
import { byteSize, percent, plural, quoted, rateText, ratio, fileName, shortSpan, visible } from "./text.js";
import { OWN_QUESTIONS, conditionOf } from "./source.js";
import { isNarrow, narrowed } from "./route.js";
import { clockOf, evidenceText, readWrite, timeOf } from "./column.js";
import { windowSeconds } from "./view_objects.js";
import { PlainTable, onlyButton, shareNode } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_OFTEN_MS, Asking, failureText } from "./asking.js";

const LONGEST_NAME = 2000;
const KINDS = {
  total: "all objects together", aggregate: "structure, class, union or array", member: "member", scalar: "scalar", artificial: "no object of the program",
};

export function objectView(app) {
  return new ObjectView(app);
}

class ObjectView {
  constructor(app) {
    this.app = app;
    this.title = "Object";
    this.id = app.route.params.get("object");
    this.facts = h("div", { class: "object-facts" });
    this.problem = h("div", null, sentence("The object is asked for …"));
    this.actions = h("p", { class: "tools" });
    this.sums = new PlainTable("Sums by window", [], { isFixed: true });
    this.sumsBox = h("div");
    this.parts = this.partTable();
    this.lines = this.answerTable("Hottest lines", "LINE", (row) => ({ ...lineFilter(row), link: this.codeLink(row.key[1]), detail: row.key[1] }), "FUNCTION");
    this.functions = this.functionTable();
    this.threads = this.answerTable("Threads", "THREAD", (row) => ({ text: String(row.key[0]), condition: `thread == ${row.key[0]}`, detail: row.key[1] }), "NAME");
    const section = (title, table) => h("section", null, h("h3", null, title), table.element);
    this.content = h("div", { hidden: true }, this.facts, this.actions, h("h3", null, "Sums by window"), this.sumsBox,
      this.partSection = section("Parts", this.parts), section("Hottest lines", this.lines.table), this.lines.note,
      section("Functions", this.functions), section("Threads", this.threads.table), this.threads.note,
      downloadBar("object", { table: () => this.sumsTable(), data: () => this.detail }));
    this.element = h("div", null, this.problem, this.content);
    this.asking = new Asking((detail) => this.onDetail(detail), (message, status) => this.onFailure(message, status));
    this.keys = { l: () => this.openIf("layout"), c: () => app.go(this.codeLink()), f: () => this.filterHere() };
  }

  stop() {
    for (const one of [this.asking, this.lines.asking, this.threads.asking]) one.stop();
  }

  openIf(view) {
    if (this.detail?.has_layout) this.app.go(this.app.link(view, { object: this.id }));
  }

  filterHere() {
    const line = this.detail?.object;
    if (line) this.app.filterBy(conditionOf(line));
  }

  codeLink(name) {
    return this.app.link("code", { function: name ?? this.detail?.functions[0]?.scope?.function ?? null });
  }

  update() {
    const { app } = this;
    const { session } = app.route;
    this.asking.ask(app, `${session} ${this.id}`, (signal) => app.source.object(session, this.id, signal), ASK_OFTEN_MS);
    const object = this.detail?.object;
    if (!object) return;
    this.askAnswer(this.lines, OWN_QUESTIONS.objectLines(object));
    this.askAnswer(this.threads, OWN_QUESTIONS.objectThreads(object));
  }

  askAnswer(what, own) {
    const { app } = this;
    const { session } = app.route;
    const question = narrowed(app.route, own);
    what.asking.ask(app, JSON.stringify([session, question]), (signal) => app.source.query(session, question, signal), ASK_OFTEN_MS);
  }

  onFailure(message, status) {
    this.problem.replaceChildren(sentence(failureText(message, status, "this object"), "failed"));
  }

  onDetail(detail) {
    const isFirst = !this.detail;
    this.detail = detail;
    this.problem.replaceChildren();
    this.content.hidden = false;
    this.drawFacts();
    this.drawSums();
    this.partSection.hidden = !detail.children.length;
    this.parts.setRows(detail.children);
    this.functions.setRows(detail.functions);
    if (isFirst) {
      this.title = `Object ${visible(detail.object.name, 100)}`;
      this.app.update(true);
    }
  }

  drawFacts() {
    const { app } = this;
    const { object, parents, has_layout: hasLayout } = this.detail;
    const key = JSON.stringify([object.object, object.candidates, hasLayout, app.route.params.toString()]);
    if (key === this.factsKey) return;
    this.factsKey = key;
    const around = parents.filter((one) => one.kind !== "total").flatMap((one) => [
      h("a", { href: app.link("object", { object: one.id }) }, visible(app.nameOf(one.object), 120)), " › "]);
    const place = [KINDS[object.kind], object.offset !== undefined && `offset ${object.offset}`, object.size !== undefined && `size ${byteSize(object.size)}`];
    this.facts.replaceChildren(
      h("p", { class: "object-name" }, around, h("b", null, visible(object.name, LONGEST_NAME))),
      h("p", { class: "mono" }, visible(object.object, LONGEST_NAME)),
      h("p", null, place.filter(Boolean).join(", ")),
      h("p", null, object.candidates?.length ? `may also be ${object.candidates.map((one) => visible(one, 100)).join(", ")}` : ""),
      h("p", { class: "note" }, isNarrow(app.route) ? "The filters hold for the lines and the threads; the other sums are of all samples." : ""));
    this.actions.replaceChildren(
      hasLayout ? h("a", { href: app.link("layout", { object: object.id }) }, "Layout") : "",
      h("a", { href: this.codeLink() }, "Code"), button("Only this object", () => this.filterHere(), { title: "filter by it (f)" }));
  }

  // One row for each metric, one column for each window.
  sumsTable() {
    const { app } = this;
    const { object } = this.detail;
    const windows = app.windows().filter((window) => object.metrics[window]);
    const snapshot = app.snapshot;
    const clock = snapshot && clockOf(snapshot);
    const of = (make) => windows.map((window) => make(object.metrics[window], window));
    const total = (window) => snapshot?.objects[0]?.metrics[window]?.samples ?? 0;
    const seconds = (window) => Math.min(windowSeconds(window), this.detail.elapsed_ns / 1e9);
    const rows = [
      clock && ["time", ...of((metrics) => shortSpan(timeOf(metrics, clock)))],
      ["share", ...of((metrics, window) => percent(metrics.samples, total(window)))],
      ["samples", ...of((metrics) => metrics.samples)],
      ["rate/s", ...of((metrics, window) => rateText(ratio(metrics.samples, seconds(window))))],
      ["loads", ...of((metrics) => metrics.loads)], ["stores", ...of((metrics) => metrics.stores)],
      ["reads to writes", ...of(readWrite)],
      ["latency", ...of((metrics) => (metrics.latency ? ratio(metrics.latency, metrics.samples).toFixed(0) : ""))],
      ...["tlb_misses", "locked", "hitm", "remote"].map((name) => [name.replace("_", " "), ...of((metrics) => metrics[name] ?? "")]),
      ["threads", ...of((metrics) => metrics.threads || "")],
      ["evidence", ...of((metrics) => evidenceText(metrics))],
    ].filter((row) => row && row.slice(1).some((cell) => cell !== ""));
    return { heads: ["metric", ...windows], rows };
  }

  drawSums() {
    const { heads, rows } = this.sumsTable();
    if (heads.join() !== this.sumsHeads) {
      this.sumsHeads = heads.join();
      this.sums = new PlainTable("Sums by window", heads.map((title, at) => ({ title, isText: at === 0, isHead: at === 0, value: (row) => row[at] })), { isFixed: true });
      this.sumsBox.replaceChildren(this.sums.element);
    }
    this.sums.setRows(rows);
  }

  partTable() {
    const { app } = this;
    const name = (part) => app.nameOf(part.object);
    return new PlainTable("Parts", [
      { title: "SAMPLES", csv: false, value: (part) => part.samples },
      shareColumn((part) => part.samples, () => this.detail.object.metrics.all.samples),
      { title: "OBJECT", isText: true, isHead: true, value: name, node: (part) => h("a", { href: app.link("object", { object: part.id }) }, visible(name(part))) },
    ], { filterOf: (part) => conditionOf(part) });
  }

  functionTable() {
    const { app } = this;
    const name = (sum) => sum.scope?.function ?? "(not known)";
    return new PlainTable("Functions", [
      shareColumn((sum) => sum.samples, () => this.detail.object.metrics.all.samples),
      { title: "LOADS", value: (sum) => sum.loads }, { title: "STORES", value: (sum) => sum.stores },
      { title: "FUNCTION", isText: true, isHead: true, value: name,
        node: (sum) => (sum.scope?.function ? h("a", { href: this.codeLink(sum.scope.function) }, visible(name(sum))) : "(not known)") },
      { title: "MODULE", isText: true, value: (sum) => sum.scope?.object ?? "", shown: (sum) => visible(fileName(sum.scope?.object), 60) },
      { title: "", value: name, node: (sum) => sum.scope?.function && onlyButton(app, `function == ${quoted(name(sum))}`, visible(name(sum), 60)) },
    ], { filterOf: (sum) => sum.scope?.function && `function == ${quoted(sum.scope.function)}` });
  }

  // A table of the answer to a question of the page's own.
  answerTable(label, title, read, detailTitle) {
    const { app } = this;
    const note = h("p", { class: "note" });
    let total = 0;
    const table = new PlainTable(label, [
      shareColumn((row) => row.metrics.samples, () => total),
      { title: "LOADS", value: (row) => row.metrics.loads }, { title: "STORES", value: (row) => row.metrics.stores },
      { title, isText: true, isHead: true, value: (row) => read(row).text,
        node: (row) => (read(row).link ? h("a", { href: read(row).link, title: visible(read(row).text) }, visible(read(row).short ?? read(row).text)) : visible(read(row).text)) },
      { title: detailTitle, isText: true, value: (row) => read(row).detail ?? "", shown: (row) => visible(read(row).detail ?? "", 100) },
      { title: "", value: (row) => read(row).condition ?? "", node: (row) => read(row).condition && onlyButton(app, read(row).condition, visible(read(row).text, 60)) },
    ], { filterOf: (row) => read(row).condition });
    const asking = new Asking((answer) => {
      total = answer.total.samples;
      table.setRows(answer.rows);
      setText(note, answer.rows.length ? `Of the ${plural(total, "sample")} that the history holds.` : "The history has no such sample.");
    }, (message, status) => setText(note, failureText(message, status, "the history's answer")));
    return { table, note, asking };
  }
}

function shareColumn(part, whole) {
  return { title: "SHARE", csv: "SAMPLES", value: part, mark: (row) => percent(part(row), whole()), node: (row) => shareNode(percent(part(row), whole()), ratio(part(row), whole())) };
}

function lineFilter(row) {
  const line = row.key[0];
  if (line === null) return { text: "(not known)" };
  return { text: line, short: fileName(line), condition: `line == ${quoted(line)}` };
}
