// Cost and accounts: the warnings, where every sample went and why, and what profiling itself costs.

import { h, sentence, setText } from "./dom.js";
import { byteSize, fileName, longSpan, percent, quoted, ratio, shortSpan, visible } from "./text.js";
import { OWN_QUESTIONS } from "./source.js";
import { narrowed } from "./route.js";
import { PlainTable, onlyButton, shareNode } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_SELDOM_MS, Asking, failureText } from "./asking.js";

const REASONS = {
  pending: "its debug information is still being read", kernel: "the kernel's own code", unascertainable: "no debug information, and the address did not help",
  unidentified: "debug information without a variable or type for the operand", undetermined: "a temporary that the compiler made",
  unresolvable: "several instructions may have waited, and nothing tells which", over_budget: "memory was short",
};
const CAUSES = { ring_full: "a ring of the kernel was full", channel_full: "the channel to the analyzer was full", undecodable: "bytes that do not fit the event" };

export function accountsView(app) {
  return new AccountsView(app);
}

class AccountsView {
  constructor(app) {
    this.app = app;
    this.title = "Cost and accounts";
    this.problem = h("div", null, sentence("No snapshot has come yet."));
    this.warnings = h("ul", { class: "warnings" });
    this.accounts = new PlainTable("Accounts", [
      { title: "SAMPLES", value: (row) => row[1] },
      { title: "SHARE", csv: false, value: (row) => row[1], mark: (row) => `${row[1]}/${this.whole}`, node: (row) => shareNode(percent(row[1], this.whole), ratio(row[1], this.whole)) },
      { title: "WHERE THEY WENT", isText: true, isHead: true, value: (row) => row[0] }, { title: "WHICH MEANS", isText: true, value: (row) => row[2] },
    ], { isFixed: true });
    this.cost = this.pairTable("Cost of profiling");
    this.undescribed = new PlainTable("Load objects without debug information", [
      { title: "SAMPLES", value: (row) => row.samples }, { title: "LOAD OBJECT", isText: true, isHead: true, value: (row) => row.module, shown: (row) => visible(row.module, 160) },
      { title: "BUILD-ID", isText: true, value: (row) => row.build_id ?? "" },
    ]);
    this.reasons = this.reasonTable();
    this.note = h("p", { class: "note" });
    this.undescribedSection = h("section", null, h("h3", null, "What would bring more names"), this.undescribed.element);
    this.content = h("div", { hidden: true }, h("h3", null, "Warnings"), this.warnings,
      h("h3", null, "Where every sample went, since the session began"), this.accounts.element,
      h("h3", null, "Samples without an object, by reason and code"), this.reasons.element, this.note, this.undescribedSection,
      h("h3", null, "Cost of profiling"), this.cost.element,
      downloadBar("accounts", { table: () => this.accounts.data(), data: () => this.data() }));
    this.element = h("div", null, this.problem, this.content);
    this.asking = new Asking((answer) => this.onAnswer(answer), (message, status) => setText(this.note, failureText(message, status, "the history's answer")));
  }

  stop() {
    this.asking.stop();
  }

  pairTable(label) {
    return new PlainTable(label, [{ title: "WHAT", isText: true, isHead: true, value: (row) => row[0] }, { title: "IS", isText: true, value: (row) => row[1] }], { isFixed: true });
  }

  reasonTable() {
    const { app } = this;
    const condition = (row) => `reason == ${quoted(row.key[0])}`;
    return new PlainTable("Samples without an object", [
      { title: "SAMPLES", value: (row) => row.metrics.samples }, { title: "REASON", isText: true, isHead: true, value: (row) => row.key[0] ?? "" },
      { title: "LOAD OBJECT", isText: true, value: (row) => row.key[1] ?? "", shown: (row) => visible(fileName(row.key[1]), 80) },
      { title: "FUNCTION", isText: true, value: (row) => row.key[2] ?? "", shown: (row) => visible(row.key[2] ?? "", 100) },
      { title: "", value: (row) => row.key[0] ?? "", node: (row) => row.key[0] && onlyButton(app, condition(row), `reason ${row.key[0]}`) },
    ], { filterOf: condition });
  }

  update() {
    const { app } = this;
    const { snapshot } = app;
    if (!snapshot) return;
    this.problem.replaceChildren();
    this.content.hidden = false;
    const { session } = app.route;
    const question = narrowed(app.route, OWN_QUESTIONS.reasons());
    this.asking.ask(app, JSON.stringify([session, question]), (signal) => app.source.query(session, question, signal), ASK_SELDOM_MS);
    this.drawWarnings(snapshot.warnings);
    this.whole = snapshot.accounting.kernel;
    this.accounts.setRows(accountRows(snapshot.accounting));
    this.cost.setRows(costRows(snapshot));
    this.undescribedSection.hidden = !snapshot.undescribed?.length;
    this.undescribed.setRows(snapshot.undescribed ?? []);
  }

  onAnswer(answer) {
    this.answer = answer;
    this.reasons.setRows(answer.rows);
    setText(this.note, answer.rows.length ? "" : "The history has no sample without an object.");
  }

  drawWarnings(warnings) {
    const shape = JSON.stringify(warnings);
    if (shape === this.warningShape) return;
    this.warningShape = shape;
    this.warnings.replaceChildren(...(warnings.length ? warnings.map((text) => h("li", null, visible(text, 1000))) : [h("li", null, "There are none.")]));
  }

  data() {
    const { accounting, cost, governance, warnings } = this.app.snapshot;
    return { accounting, cost, governance, warnings, reasons: this.answer };
  }
}

// Each sample of the kernel is in one of the rows that follow its own.
function accountRows(accounting) {
  const rows = [["samples", accounting.kernel, "all that the kernel took"], ["named", accounting.attributed, "they have a data object"]];
  for (const [reason, count] of Object.entries(accounting.unknown)) rows.push([reason === "pending" ? "waiting" : `unknown: ${visible(reason, 60)}`, count, REASONS[reason] ?? ""]);
  rows.push(["no memory", accounting.not_memory, "their instruction touches no memory"]);
  for (const [cause, count] of Object.entries(accounting.lost)) rows.push([`lost: ${cause.replace("_", " ")}`, count, CAUSES[cause] ?? ""]);
  const within = [["conflicts", "named, though debug information and address disagree"], ["voted", "named after what other instructions said of the address"],
    ["by_frequency", "named after the one of several instructions that runs most often"], ["outside", "of others, dropped, and not in the sum"]];
  for (const [name, text] of within) if (accounting[name]) rows.push([name.replace("_", " "), accounting[name], text]);
  return rows;
}

function costRows(snapshot) {
  const { cost, governance, accounting } = snapshot;
  const rows = [
    ["CPU time of the profiler", `${shortSpan(cost.own_cpu_ns)}, ${percent(cost.own_cpu_ns, snapshot.elapsed_ns) || "0%"} of one CPU`],
    ["memory of the profiler", byteSize(cost.own_rss_bytes)],
    ["time it took from the target", `${shortSpan(cost.target_ns)}, ${percent(cost.target_ns, snapshot.elapsed_ns) || "0%"} of the time`],
  ];
  if (accounting.throttled_ns) rows.push(["throttled by the kernel", longSpan(accounting.throttled_ns)]);
  if (accounting.invisible_ns) rows.push(["time in which an event could not count", longSpan(accounting.invisible_ns)]);
  if (!governance) return rows;
  const limit = governance.max_overhead;
  rows.push(["share that sampling takes now", `${(governance.overhead * 100).toFixed(2)}%${limit === null ? ", not limited" : ` of at most ${(limit * 100).toFixed(2)}%`}`]);
  rows.push(["changes of the period", String(governance.n_changes)]);
  governance.events.forEach((event, at) => {
    const name = snapshot.events[at]?.name ?? `event ${at}`;
    const rate = event.period ? `period ${event.period}` : `${event.frequency_hz ?? "?"} Hz`;
    rows.push([visible(name, 80), `${event.is_off ? "off for the moment, " : ""}${rate}, ${shortSpan(event.sample_cost_ns)} a sample`]);
  });
  if (governance.gap_ns) rows.push(["time with events switched off", longSpan(governance.gap_ns)]);
  if (governance.lives?.exit_ns) rows.push(["what the target's end will take longer", shortSpan(governance.lives.exit_ns)]);
  return rows;
}
