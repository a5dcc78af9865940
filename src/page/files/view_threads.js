// Cache lines that threads share: who touches which bytes, whether that is false sharing, and what would separate them.

import { h, sentence, svg } from "./dom.js";
import { fileName, plural, quoted, shortSpan, visible } from "./text.js";
import { narrowed } from "./route.js";
import { fitted } from "./heat.js";
import { PlainTable, onlyButton } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_SELDOM_MS, Asking, failureText } from "./asking.js";

const LIMIT = 20;
const KINDS_OF_SHARING = { false: "false sharing", true: "true sharing", none: "not in each other's way" };
const HEADS = ["line", "sharing", "thread", "name of thread", "time ns", "reads", "writes", "line offset", "size", "object", "function", "source"];

export function threadsView(app) {
  return new ThreadsView(app);
}

class ThreadsView {
  constructor(app) {
    this.app = app;
    this.title = "Threads on one cache line";
    this.content = h("div", null, sentence("The cache lines are asked for …"));
    this.element = h("div", null, this.content, downloadBar("threads", {
      table: () => this.csv(), data: () => this.answer ?? {}, picture: () => this.content.querySelector("svg"),
    }));
    this.asking = new Asking((answer) => this.onAnswer(answer), (message, status) => this.content.replaceChildren(sentence(failureText(message, status, "the threads' cache lines"), "failed")));
  }

  stop() {
    this.asking.stop();
  }

  update(isOtherRoute) {
    const { app } = this;
    const { session } = app.route;
    const body = narrowed(app.route, { limit: LIMIT });
    this.asking.ask(app, JSON.stringify([session, body]), (signal) => app.source.sharing(session, body, signal), ASK_SELDOM_MS);
    if (isOtherRoute && this.answer) this.draw();
  }

  onAnswer(answer) {
    const text = JSON.stringify(answer);
    if (text === this.text) return;
    this.text = text;
    this.answer = answer;
    this.draw();
  }

  draw() {
    const { answer } = this;
    const sections = answer.lines.map((line) => this.section(line));
    if (!sections.length) sections.push(sentence("No cache line is shared: no two threads touch one in turns, as far as the samples with an address tell."));
    const rest = answer.common_lines - answer.lines.length;
    const notes = [`Addresses are known of ${answer.samples_with_address} of the ${plural(answer.samples_on_memory, "sample")} on memory,`,
      `which are of ${answer.rows_held} of ${plural(answer.rows_of_span, "sample")}.`];
    if (rest > 0) notes.push(`${plural(rest, "more line")} ${rest === 1 ? "is" : "are"} touched by two threads or more, but not in turns.`);
    if (answer.truncated) notes.push("There are more lines than are shown.");
    this.content.replaceChildren(...sections, h("p", { class: "note" }, notes.join(" ")));
  }

  section(line) {
    const { app } = this;
    const stake = line.at_stake_ns ? `, at most ${shortSpan(line.at_stake_ns)} at stake` : "";
    const table = this.partTable(line);
    const only = line.line === null ? "" : onlyButton(app, `cacheline == ${line.line}`, `line ${line.line}`);
    table.setRows(line.parts);
    return h("section", { class: "sharing" },
      h("h3", { class: "plain" }, `${lineName(line)}: ${KINDS_OF_SHARING[line.sharing] ?? line.sharing}${stake} `, only),
      h("p", null, visible(line.verdict)),
      h("div", { class: "picture", tabindex: 0, role: "region", "aria-label": `Bytes of ${lineName(line)}` }, this.picture(line)),
      table.element, line.advice ? h("p", null, h("b", null, "To separate them: "), visible(line.advice, 1000)) : "",
      line.parts_left_out ? h("p", { class: "note" }, `${plural(line.parts_left_out, "more part")} left out.`) : "");
  }

  // 64 bytes; a row for each thread, a block for each part that it touches.
  picture(line) {
    const threads = [...new Set(line.parts.map((part) => part.tid))];
    const height = 20 + threads.length * 40;
    const picture = svg("svg", { viewBox: `0 0 ${166 + 64 * 13} ${height}`, role: "img", class: "map", "aria-label": "Which thread touches which bytes; the table has the same" });
    for (let byte = 0; byte <= 64; byte += 8) {
      picture.append(svg("text", { x: 145 + byte * 13, y: 13, class: "ruler" }, String(byte)),
        svg("line", { x1: 146 + byte * 13, x2: 146 + byte * 13, y1: 18, y2: height, class: "grid-line" }));
    }
    threads.forEach((tid, at) => {
      const y = 20 + at * 40;
      const parts = line.parts.filter((part) => part.tid === tid);
      picture.append(svg("text", { x: 0, y: y + 22, class: "label" }, fitted(`${tid} ${visible(parts[0].comm ?? "", 20)}`, 140)));
      for (const part of parts) this.block(picture, part, y);
    });
    return picture;
  }

  block(picture, part, y) {
    const x = 146 + part.line_offset * 13;
    const width = Math.max(1, Math.min(64 - part.line_offset, part.size ?? 1)) * 13;
    const text = `${visible(part.name ?? part.object ?? "?", 60)}`;
    const counts = `R ${part.reads} W ${part.writes}`;
    picture.append(svg("g", { class: `block ${part.writes ? "writes" : "reads"}` }, svg("title", null, `${text}: ${counts}`),
      svg("rect", { x, y: y + 2, width, height: 34 }),
      svg("text", { x: x + 4, y: y + 16, class: "label" }, fitted(text, width - 4)), svg("text", { x: x + 4, y: y + 31, class: "label small" }, fitted(counts, width - 4, 6.4))));
  }

  partTable(line) {
    const { app } = this;
    const object = (part) => app.snapshot?.objects.find((one) => one.object === part.object);
    const bytes = (part) => `${part.line_offset}..${part.line_offset + Math.max(1, part.size ?? 1) - 1}`;
    return new PlainTable(`Parts of ${lineName(line)}`, [
      { title: "THREAD", isText: true, isHead: true, value: (part) => part.tid, shown: (part) => `${part.tid} ${visible(part.comm ?? "", 20)}` },
      { title: "TIME", value: (part) => part.time_ns ?? 0, shown: (part) => (part.time_ns === null ? "" : shortSpan(part.time_ns)) },
      { title: "READS", value: (part) => part.reads }, { title: "WRITES", value: (part) => part.writes },
      { title: "BYTES", value: (part) => part.line_offset, shown: bytes },
      { title: "NAME", isText: true, value: (part) => part.name ?? "", mark: (part) => `${part.name} ${object(part)?.id}`,
        node: (part) => (object(part) ? h("a", { href: app.link("object", { object: object(part).id }) }, visible(part.name, 120)) : visible(part.name ?? "", 120)) },
      { title: "FUNCTION", isText: true, value: (part) => part.function ?? "",
        node: (part) => part.function && h("a", { href: app.link("code", { function: part.function }) }, visible(part.function, 80)) },
      { title: "SOURCE", isText: true, value: (part) => part.source ?? "", shown: (part) => visible(fileName(part.source), 60) },
      { title: "", value: (part) => part.tid, node: (part) => onlyButton(app, `thread == ${part.tid}`, `thread ${part.tid}`) },
    ], { filterOf: (part) => (part.source ? `line == ${quoted(part.source)}` : `thread == ${part.tid}`) });
  }

  csv() {
    const rows = (this.answer?.lines ?? []).flatMap((line) => line.parts.map((part) => [line.line, line.sharing, part.tid, part.comm, part.time_ns,
      part.reads, part.writes, part.line_offset, part.size, part.name, part.function, part.source]));
    return { heads: HEADS, rows };
  }
}

// Who may not see all is told no addresses.
function lineName(line) {
  return line.line === null ? `A line of process ${line.pid}` : `Line ${line.line}`;
}
