// The code of a function: source lines and instructions, with what waited there and the objects that they touch.

import { button, choice, h, sentence, setAttribute } from "./dom.js";
import { fileName, percent, plural, quoted, ratio, visible } from "./text.js";
import { OWN_QUESTIONS } from "./source.js";
import { narrowed } from "./route.js";
import { heatStep } from "./heat.js";
import { PlainTable } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_SELDOM_MS, Asking, failureText } from "./asking.js";

export function codeView(app) {
  return new CodeView(app);
}

class CodeView {
  constructor(app) {
    this.app = app;
    this.title = "Code";
    this.choiceBox = h("span");
    this.linesButton = button("Source lines only", () => this.toggleLines(), { "aria-pressed": "false" });
    this.hottestButton = button("To the hottest", () => this.toHottest());
    this.problem = h("div", null, sentence("The functions are asked for …"));
    this.facts = h("p");
    this.table = this.codeTable();
    this.objects = this.objectTable();
    this.content = h("div", { hidden: true }, this.facts, h("div", { class: "code" }, this.table.element), h("h3", null, "Objects of this function"), this.objects.element,
      downloadBar("code", { table: () => this.table.data(), data: () => this.answer }));
    this.element = h("div", null, h("p", { class: "tools" }, this.choiceBox, this.linesButton, this.hottestButton), this.problem, this.content);
    this.functions = new Asking((answer) => this.onFunctions(answer), (message, status) => this.onNoFunctions(message, status));
    this.asking = new Asking((answer) => this.onAnswer(answer), (message, status) => this.onFailure(message, status));
  }

  stop() {
    this.functions.stop();
    this.asking.stop();
  }

  update(isOtherRoute) {
    const { app } = this;
    const { session } = app.route;
    const question = narrowed(app.route, OWN_QUESTIONS.functions());
    this.functions.ask(app, JSON.stringify([session, question]), (signal) => app.source.query(session, question, signal), 0);
    setAttribute(this.linesButton, "aria-pressed", String(app.route.params.has("lines")));
    this.askCode();
    if (isOtherRoute) {
      this.drawChoice();
      if (this.answer) this.draw();
    }
  }

  // The function of the address, else the one with the most samples.
  name() {
    return this.app.route.params.get("function") ?? this.known?.[0];
  }

  askCode() {
    const { app } = this;
    const { session } = app.route;
    const name = this.name();
    if (!name) return;
    const body = narrowed(app.route, { function: name });
    const key = JSON.stringify([session, body]);
    if (key !== this.asking.key) {
      this.content.hidden = true;
      this.problem.replaceChildren(sentence(`The code of ${visible(name, 100)} is asked for …`));
    }
    this.asking.ask(app, key, (signal) => app.source.code(session, body, signal), ASK_SELDOM_MS);
  }

  onFunctions(answer) {
    this.known = answer.rows.map((row) => row.key[0]).filter((name) => name !== null);
    if (!this.known.length && !this.name()) this.problem.replaceChildren(sentence("No sample is in a function that has a name."));
    this.drawChoice();
    this.askCode();
  }

  onNoFunctions(message, status) {
    if (!this.name()) this.onFailure(message, status);
  }

  drawChoice() {
    const name = this.name();
    if (!name) return;
    const names = [...new Set([name, ...(this.known ?? [])])];
    const shape = JSON.stringify([names, name]);
    if (shape === this.choiceShape) return;
    this.choiceShape = shape;
    const hasFocus = this.choiceBox.contains(document.activeElement);
    const options = names.map((one) => [one, visible(one, 80)]);
    this.choiceBox.replaceChildren(choice("Function", options, name, (one) => this.app.go(this.app.link("code", { function: one }))));
    if (hasFocus) this.choiceBox.querySelector("select").focus();
  }

  onFailure(message, status) {
    this.content.hidden = true;
    this.problem.replaceChildren(sentence(failureText(message, status, "the code"), "failed"));
  }

  onAnswer(answer) {
    this.answer = answer;
    this.problem.replaceChildren();
    this.content.hidden = false;
    this.title = `Code of ${visible(answer.function ?? this.name(), 100)}`;
    this.draw();
    this.app.shell.drawPlace();
  }

  draw() {
    const { answer, app } = this;
    this.total = answer.total.waited;
    const facts = [`${plural(answer.total.samples, "sample")} in ${visible(fileName(answer.module), 80)}.`,
      "WAITED is the share of samples for which the instruction was the one that waited, REPORT that for which the kernel reported it.",
      "What is in brackets the instruction and the debug information say alone."];
    for (const file of answer.files) if (file.not_shown) facts.push(`${visible(fileName(file.path), 80)} is not shown: ${visible(file.not_shown, 200)}.`);
    if (answer.truncated) facts.push("There is more code than is shown.");
    this.facts.textContent = facts.join(" ");
    this.table.most = 2000;
    this.table.setRows(app.route.params.has("lines") ? lineRows(answer) : codeRows(answer));
    this.objects.setRows(answer.objects);
  }

  toggleLines() {
    const isSet = this.app.route.params.has("lines");
    this.app.go(this.app.link("code", { lines: isSet ? null : "1" }));
  }

  toHottest() {
    const rows = this.table.rows;
    const most = Math.max(0, ...rows.map((row) => (row.isLine ? 0 : row.waited)));
    const at = rows.findIndex((row) => most > 0 && !row.isLine && row.waited === most);
    this.table.body.children[at]?.scrollIntoView({ block: "center" });
  }

  codeTable() {
    const share = (row, name) => (row[name] ? percent(row[name], this.total) : "");
    return new PlainTable("Code", [
      { title: "WAITED", value: (row) => row.waited, mark: (row) => `${row.waited}/${this.total}`,
        node: (row) => h("span", { class: `heat-cell warm-${row.waited ? heatStep(ratio(row.waited, this.total)) : 0}` }, share(row, "waited")) },
      { title: "REPORT", value: (row) => row.reported, shown: (row) => share(row, "reported") },
      { title: "ADDRESS", value: (row) => row.place },
      { title: "CODE", isText: true, value: (row) => row.text, mark: (row) => `${row.isLine} ${row.text}`,
        node: (row) => h("code", { class: row.isLine ? "source" : "" }, visible(row.text.replaceAll("\t", "        "), 300)) },
      { title: "OBJECT", isText: true, value: (row) => row.objects.map((one) => one.name).join(" "), mark: (row) => JSON.stringify(row.objects), node: (row) => this.objectNodes(row) },
    ], { isFixed: true, rowClass: (row) => (row.isLine ? "source-row" : ""), filterOf: (row) => row.condition });
  }

  objectNodes(row) {
    const nodes = row.objects.slice(0, 3).flatMap((one, at) => [at ? ", " : "", one.isOnlySaid ? `[${visible(one.name, 80)}]` : this.objectLink(one)]);
    if (row.objects.length > 3) nodes.push(` and ${row.objects.length - 3} more`);
    return h("span", null, nodes);
  }

  objectLink(one) {
    const line = this.app.snapshot?.objects.find((object) => object.object === one.object);
    return line ? h("a", { href: this.app.link("object", { object: line.id }) }, visible(one.name, 100)) : visible(one.name, 100);
  }

  objectTable() {
    return new PlainTable("Objects of this function", [
      { title: "SHARE", csv: false, value: (one) => one.samples, shown: (one) => percent(one.samples, this.total) }, { title: "SAMPLES", value: (one) => one.samples },
      { title: "OBJECT", isText: true, isHead: true, value: (one) => one.name, mark: (one) => one.object, node: (one) => this.objectLink(one) },
    ]);
  }
}

// Instructions in order, with the source line above them wherever it is another one.
function codeRows(answer) {
  const lines = new Map(answer.lines.map((line) => [`${line.file}:${line.line}`, line]));
  const rows = [];
  const told = new Set();
  let place = null;
  for (const instruction of answer.instructions) {
    const here = instruction.file === null ? null : `${instruction.file}:${instruction.line}`;
    if (here !== place) {
      place = here;
      const line = here && lines.get(here);
      const bare = { file: instruction.file, line: instruction.line, text: line?.text ?? null, approximate: line?.approximate, waited: 0, reported: 0 };
      // A line whose instructions lie apart is there several times: its share is told once.
      if (here) rows.push(lineRow(told.has(here) || !line ? bare : line));
      told.add(here);
    }
    const said = instruction.operand && !instruction.objects.length ? [{ name: instruction.operand, object: instruction.operand, isOnlySaid: true }] : [];
    rows.push({
      isLine: false, waited: instruction.waited, reported: instruction.reported, place: instruction.address.replace(/^0x/, ""),
      text: `${instruction.waited ? "● " : "  "}${instruction.text}`, objects: instruction.objects.length ? instruction.objects : said,
      condition: answer.module && `instruction == ${quoted(`${answer.module}+${instruction.address}`)}`,
    });
  }
  return rows;
}

function lineRow(line) {
  const text = line.text ?? `${fileName(line.file)}:${line.line}`;
  return {
    isLine: true, waited: line.waited, reported: line.reported, place: `${line.approximate ? "~" : ""}${line.line}`, text,
    objects: [], condition: `line == ${quoted(`${line.file}:${line.line}`)}`,
  };
}

function lineRows(answer) {
  return answer.lines.map((line) => {
    const inside = new Set(line.instructions);
    const objects = new Map();
    for (const instruction of answer.instructions) {
      if (inside.has(instruction.address)) for (const one of instruction.objects) objects.set(one.object, one);
    }
    return { ...lineRow(line), objects: [...objects.values()] };
  });
}
