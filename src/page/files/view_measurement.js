// A measurement: exact counts, the rates that follow, and sums by function, object and the rest.

import { h, sentence } from "./dom.js";
import { percent, visible } from "./text.js";
import { narrowed } from "./route.js";
import { PlainTable, shareNode } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_SELDOM_MS, Asking, failureText } from "./asking.js";

const ORDER = ["function", "object", "module", "thread", "process", "segment"];
const TITLES = { function: "Functions", object: "Objects", module: "Load objects", thread: "Threads", process: "Processes", segment: "Kinds of memory" };

export function measurementView(app) {
  return new MeasurementView(app);
}

class MeasurementView {
  constructor(app) {
    this.app = app;
    this.title = "Measurement";
    this.content = h("div", null, sentence("The measurement is asked for …"));
    this.element = h("div", null, this.content, downloadBar("measurement", { table: () => this.csv(), data: () => this.answer ?? {} }));
    this.asking = new Asking((answer) => this.onAnswer(answer), (message, status) => this.content.replaceChildren(sentence(failureText(message, status, "a measurement"), "failed")));
  }

  stop() {
    this.asking.stop();
  }

  update() {
    const { app } = this;
    const { session } = app.route;
    const body = narrowed(app.route, {});
    this.asking.ask(app, JSON.stringify([session, body]), (signal) => app.source.measurement(session, body, signal), ASK_SELDOM_MS);
  }

  onAnswer(answer) {
    const text = JSON.stringify(answer);
    if (text === this.text) return;
    this.text = text;
    this.answer = answer;
    this.title = `Measurement: ${visible(answer.measure, 40)}`;
    this.app.shell.drawPlace();
    this.content.replaceChildren(...this.parts(answer).filter(Boolean));
  }

  parts(answer) {
    return [
      ...answer.warnings.map((warning) => h("p", { class: "warn" }, visible(warning, 500))),
      answer.counts?.length ? section("Exact counts", countTable(answer.counts)) : null,
      answer.rates?.length ? section("Rates", rateTable(answer.rates)) : null,
      ...ORDER.filter((name) => answer.summaries[name]?.length).map((name) => section(TITLES[name], this.summaryTable(name, answer.summaries[name]))),
      ...(answer.details ?? []).map((detail) => section(`Code of ${visible(detail.function ?? "?", 80)}, ${percent(detail.total.percent, 100)}`, this.detailTable(detail))),
      section("Run", runTable(answer.run)),
      ...(answer.not_shown ?? []).map((one) => h("p", { class: "note" }, visible(typeof one === "string" ? one : JSON.stringify(one), 300))),
    ];
  }

  summaryTable(name, rows) {
    const { app } = this;
    const link = (row) => {
      if (name === "function" && row.key.at(-1)) return app.link("code", { function: row.key.at(-1) });
      const line = name === "object" && app.snapshot?.objects.find((one) => one.object === row.key[0]);
      return line ? app.link("object", { object: line.id }) : null;
    };
    const hasLatency = rows.some((row) => row.average_latency !== null);
    const table = new PlainTable(TITLES[name], [
      { title: "SHARE", csv: "PERCENT", value: (row) => row.percent, node: (row) => shareNode(percent(row.percent, 100), row.percent / 100) },
      { title: "SAMPLES", value: (row) => row.samples },
      ...(hasLatency ? [{ title: "LATENCY", value: (row) => row.average_latency ?? 0, shown: (row) => row.average_latency?.toFixed(0) ?? "" }] : []),
      { title: name.toUpperCase(), isText: true, isHead: true, value: (row) => row.name, mark: (row) => `${row.name} ${link(row)}`,
        node: (row) => (link(row) ? h("a", { href: link(row) }, visible(row.name, 160)) : visible(row.name, 160)) },
    ]);
    table.setRows(rows.filter((row) => !row.cut));
    return table;
  }

  detailTable(detail) {
    const table = new PlainTable(`Code of ${visible(detail.function ?? "?", 80)}`, [
      { title: "SHARE", csv: "PERCENT", value: (row) => row.percent ?? 0, shown: (row) => (row.samples ? percent(row.percent, 100) : "") },
      { title: "SAMPLES", value: (row) => row.samples ?? 0, shown: (row) => (row.samples ? String(row.samples) : "") },
      { title: "LINE", value: (row) => row.line ?? "" },
      { title: "ADDRESS", value: (row) => row.address ?? "", shown: (row) => (row.kind === "statement" ? "" : (row.address ?? "").replace(/^0x/, "")) },
      { title: "CODE", isText: true, value: (row) => row.text ?? "", mark: (row) => `${row.kind} ${row.text}`,
        node: (row) => h("code", null, row.kind === "cache_line" ? "- - - -" : visible((row.text ?? "").replaceAll("\t", "        "), 300)) },
      { title: "OBJECT", isText: true, value: (row) => row.object ?? "", shown: (row) => visible(this.app.nameOf(row.object ?? ""), 120) },
    ], { isFixed: true });
    table.setRows(detail.rows);
    return table;
  }

  csv() {
    const { answer } = this;
    const rows = ORDER.flatMap((name) => (answer?.summaries[name] ?? []).map((row) => [name, row.name, row.percent, row.samples]));
    return { heads: ["by", "name", "percent", "samples"], rows };
  }
}

function section(title, table) {
  return h("section", null, h("h3", null, title), table.element);
}

function countTable(counts) {
  const share = (row) => (row.enabled_ns === row.running_ns ? "exact" : `counted ${percent(row.running_ns, row.enabled_ns)} of the time`);
  const table = new PlainTable("Exact counts", [
    { title: "COUNT", value: (row) => row.count ?? "", shown: (row) => (row.count === null ? "not counted" : row.count.toLocaleString("en")) },
    { title: "EVENT", isText: true, isHead: true, value: (row) => row.event },
    { title: "HOW", isText: true, value: share, shown: (row) => visible(row.lacks ?? `${share(row)}${row.includes_kernel ? ", with the kernel" : ""}`, 160) },
  ]);
  table.setRows(counts);
  return table;
}

function rateTable(rates) {
  const table = new PlainTable("Rates", [
    { title: "RATE", value: (row) => row.value ?? 0, shown: rateShown },
    { title: "NAME", isText: true, isHead: true, value: (row) => row.name },
  ]);
  table.setRows(rates);
  return table;
}

function rateShown(row) {
  const number = row.value === null ? "-" : Number(row.value.toPrecision(4));
  return `${number} ${row.unit === "per second" ? "/s" : (row.unit ?? "")}`.trim();
}

function runTable(run) {
  const table = new PlainTable("Run", [
    { title: "WHAT", isText: true, isHead: true, value: (row) => row.name }, { title: "TEXT", isText: true, value: (row) => row.text, shown: (row) => visible(row.text, 400) },
  ], { isFixed: true });
  table.setRows(run);
  return table;
}
