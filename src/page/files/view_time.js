// Samples by second, as bars: a span that is drawn over them filters every view; and their table.

import { button, h, sentence, setAttribute, setText, svg } from "./dom.js";
import { longSpan, plural, ratio } from "./text.js";
import { OWN_QUESTIONS } from "./source.js";
import { whereOf } from "./route.js";
import { PlainTable, onlyButton, shareNode } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_OFTEN_MS, Asking, failureText } from "./asking.js";

const MAX_BARS = 300;
const HEIGHT = 220;
const FLOOR = 196;

export function timeView(app) {
  return new TimeView(app);
}

class TimeView {
  constructor(app) {
    this.app = app;
    this.title = "Samples by second";
    this.problem = h("div", null, sentence("The history is asked for its seconds …"));
    this.chart = h("div", {
      class: "picture chart", tabindex: 0, role: "slider", "aria-label": "Second", "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0,
      keydown: (event) => this.onKey(event), keyup: (event) => this.onKeyUp(event),
      pointerdown: (event) => this.onDown(event), pointermove: (event) => this.onMove(event), pointerup: (event) => this.onUp(event),
      pointercancel: () => { this.dragged = null; },
    });
    this.from = h("input", { type: "number", min: 0, size: 6, "aria-label": "from second" });
    this.to = h("input", { type: "number", min: 0, size: 6, "aria-label": "to second" });
    const apply = () => this.applyFields();
    this.fields = h("p", { class: "tools" }, h("span", null, "Span: second"), this.from, h("span", null, "to"), this.to,
      button("Only this span", apply), this.nowButton = button("Now", () => this.setSpan(null), { title: "back to now (0)" }));
    this.hint = h("p", { class: "note" }, "Drag over the bars, or use the arrow keys with Shift: the span then holds in every view that asks the history.");
    this.table = this.secondTable();
    this.content = h("div", { hidden: true }, this.chart, this.fields, this.hint, this.table.element,
      downloadBar("time", { table: () => this.table.data(), data: () => this.answer, picture: () => this.chart.querySelector("svg") }));
    this.element = h("div", null, this.problem, this.content);
    this.asking = new Asking((answer) => this.onAnswer(answer), (message, status) => this.problem.replaceChildren(sentence(failureText(message, status, "the history's answer"), "failed")));
  }

  stop() {
    this.asking.stop();
  }

  // All seconds are shown, whatever the span: it is marked.
  update(isOtherRoute) {
    const { app } = this;
    const question = { ...OWN_QUESTIONS.seconds(), where: whereOf(app.route) };
    const { session } = app.route;
    this.asking.ask(app, JSON.stringify([session, question]), (signal) => app.source.query(session, question, signal), ASK_OFTEN_MS);
    if (isOtherRoute && this.seconds) this.draw();
  }

  onAnswer(answer) {
    this.answer = answer;
    this.problem.replaceChildren();
    const known = new Map(answer.rows.filter((row) => row.key[0] !== null).map((row) => [row.key[0], row.metrics]));
    if (!known.size) {
      this.content.hidden = true;
      return this.problem.replaceChildren(sentence("The history has no such samples."));
    }
    this.content.hidden = false;
    const first = Math.min(...known.keys());
    const last = Math.max(...known.keys());
    this.seconds = [];
    for (let second = first; second <= last; second += 1) {
      const { samples = 0, loads = 0, stores = 0 } = known.get(second) ?? {};
      this.seconds.push({ second, samples, loads, stores });
    }
    this.most = Math.max(1, ...this.seconds.map((one) => one.samples));
    this.draw();
  }

  // The span of the address in seconds, or that which is being drawn.
  span() {
    if (this.dragged) return [Math.min(...this.dragged), Math.max(...this.dragged) + 1];
    const match = /^(\d+)s\.\.(\d+)s$/.exec(this.app.route.params.get("span") ?? "");
    return match ? [Number(match[1]), Number(match[2])] : null;
  }

  draw() {
    const first = this.seconds[0].second;
    const last = this.seconds.at(-1).second;
    const perBar = Math.ceil(this.seconds.length / MAX_BARS);
    const width = this.app.isNarrowScreen() ? 380 : 1200;
    this.scale = { first, perSecond: (width - 50) / this.seconds.length, width };
    const bars = [];
    for (let at = 0; at < this.seconds.length; at += perBar) {
      const part = this.seconds.slice(at, at + perBar);
      bars.push({ second: part[0].second, count: part.length, samples: part.reduce((sum, one) => sum + one.samples, 0) });
    }
    const most = Math.max(1, ...bars.map((bar) => bar.samples));
    const picture = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, class: "seconds", "aria-hidden": "true" });
    picture.append(svg("text", { x: 0, y: 20, class: "ruler" }, String(most)), svg("text", { x: 0, y: FLOOR, class: "ruler" }, "0"));
    const span = this.span();
    if (span) picture.append(svg("rect", { x: this.xOf(span[0]), y: 6, width: Math.max(2, this.xOf(span[1]) - this.xOf(span[0])), height: FLOOR - 6, class: "span" }));
    const gap = this.scale.perSecond * perBar > 4 ? 1 : 0;
    for (const bar of bars) {
      const height = ratio(bar.samples, most) * (FLOOR - 12);
      const isIn = !span || (bar.second < span[1] && bar.second + bar.count > span[0]);
      picture.append(svg("rect", { x: this.xOf(bar.second), y: FLOOR - height, width: Math.max(0.5, this.scale.perSecond * bar.count - gap), height, class: isIn ? "second" : "second out" }));
    }
    const step = niceStep(this.seconds.length, width / 90);
    for (let second = Math.ceil(first / step) * step; second <= last; second += step) {
      picture.append(svg("text", { x: this.xOf(second), y: HEIGHT - 6, class: "ruler" }, longSpan(second * 1e9)));
    }
    const cursor = this.cursorAt();
    picture.append(svg("line", { x1: this.xOf(cursor + 0.5), x2: this.xOf(cursor + 0.5), y1: 4, y2: FLOOR, class: "cursor" }));
    this.chart.replaceChildren(picture);
    this.tell(first, last, cursor, span);
    const newestFirst = [...this.seconds].reverse();
    this.table.setRows(newestFirst);
  }

  tell(first, last, cursor, span) {
    const one = this.seconds[cursor - first];
    setAttribute(this.chart, "aria-valuemin", first);
    setAttribute(this.chart, "aria-valuemax", last);
    setAttribute(this.chart, "aria-valuenow", cursor);
    const text = span ? `second ${span[0]} to ${span[1]}` : `second ${cursor}: ${plural(one?.samples ?? 0, "sample")}`;
    setAttribute(this.chart, "aria-valuetext", text);
    this.nowButton.disabled = !this.app.route.params.has("span");
    const isTyped = this.fields.contains(document.activeElement) && document.activeElement.tagName === "INPUT";
    if (isTyped) return;
    this.from.value = span ? span[0] : first;
    this.to.value = span ? span[1] : last + 1;
  }

  cursorAt() {
    const last = this.seconds.at(-1).second;
    return Math.max(this.seconds[0].second, Math.min(last, this.cursor ?? this.span()?.[0] ?? last));
  }

  xOf(second) {
    return 50 + (second - this.scale.first) * this.scale.perSecond;
  }

  secondAt(event) {
    const box = this.chart.querySelector("svg").getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.scale.width;
    const second = this.scale.first + Math.floor((x - 50) / this.scale.perSecond);
    return Math.max(this.scale.first, Math.min(this.seconds.at(-1).second, second));
  }

  onDown(event) {
    if (event.button !== 0) return;
    this.chart.setPointerCapture(event.pointerId);
    const second = this.secondAt(event);
    this.dragged = [second, second];
    this.cursor = second;
    this.draw();
  }

  onMove(event) {
    if (!this.dragged) return;
    this.dragged = [this.dragged[0], this.secondAt(event)];
    this.draw();
  }

  onUp() {
    if (this.dragged) this.applyDragged();
  }

  applyDragged() {
    const span = this.span();
    this.dragged = null;
    this.setSpan(span);
  }

  onKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Enter" && this.dragged) this.applyDragged();
    if (step === undefined) return;
    event.preventDefault();
    const before = this.cursorAt();
    const first = this.seconds[0].second;
    this.cursor = Math.max(first, Math.min(this.seconds.at(-1).second, before + step));
    if (event.shiftKey) this.dragged = [this.dragged?.[0] ?? before, this.cursor];
    else this.dragged = null;
    this.draw();
  }

  // The span holds when Shift is let go.
  onKeyUp(event) {
    if (event.key === "Shift" && this.dragged) this.applyDragged();
  }

  applyFields() {
    const from = Number(this.from.value);
    const to = Number(this.to.value);
    if (Number.isInteger(from) && Number.isInteger(to) && from >= 0 && to > from) return this.setSpan([from, to]);
    setText(this.hint, "A span is from a second to a later one.");
  }

  setSpan(span) {
    const { app } = this;
    app.go(app.link("time", { span: span && `${span[0]}s..${span[1]}s` }));
    this.draw();
  }

  secondTable() {
    const { app } = this;
    return new PlainTable("Samples by second", [
      { title: "SECOND", isHead: true, value: (row) => row.second, shown: (row) => longSpan(row.second * 1e9) },
      { title: "SAMPLES", value: (row) => row.samples }, { title: "LOADS", value: (row) => row.loads }, { title: "STORES", value: (row) => row.stores },
      { title: "", isText: true, value: (row) => row.samples, mark: (row) => `${row.samples}/${this.most}`, node: (row) => shareNode("", ratio(row.samples, this.most)) },
      { title: "", value: (row) => row.second, node: (row) => onlyButton(app, `second == ${row.second}`, `second ${row.second}`) },
    ], { filterOf: (row) => `second == ${row.second}` });
  }
}

function niceStep(seconds, most) {
  return [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400].find((step) => seconds / step <= most) ?? 86400;
}
