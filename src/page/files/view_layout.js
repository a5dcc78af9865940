// The layout of a type: a map of its bytes, a cache line in each row, with what happens at each member; and its table.

import { h, sentence, svg } from "./dom.js";
import { percent, plural, ratio, shortSpan, typeText, visible } from "./text.js";
import { narrowed } from "./route.js";
import { clockOf, readWrite, timeOf } from "./column.js";
import { conditionOf } from "./source.js";
import { fitted, hatches, heatStep } from "./heat.js";
import { PlainTable, onlyButton, shareNode } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_OFTEN_MS, Asking, failureText } from "./asking.js";

const BYTE_PX = 15;
const LINE_PX = 46;
const LEFT_PX = 62;
const TOP_PX = 20;
const MAX_LINES = 160;
const NO_SAMPLES = { samples: 0, loads: 0, stores: 0, events: {} };

export function layoutView(app) {
  return new LayoutView(app);
}

class LayoutView {
  constructor(app) {
    this.app = app;
    this.title = "Layout";
    this.id = app.route.params.get("object");
    this.problem = h("div", null, sentence("The layout is asked for …"));
    this.facts = h("p");
    this.picture = h("div", { class: "picture", tabindex: 0, role: "region", "aria-label": "Map of the bytes" });
    this.table = this.memberTable();
    this.content = h("div", { hidden: true }, this.facts, this.legend(), h("div", { class: "stack" }, this.picture, this.table.element),
      downloadBar("layout", { table: () => this.table.data(), data: () => this.layout, picture: () => this.picture.querySelector("svg") }));
    this.element = h("div", null, this.problem, this.content);
    this.asking = new Asking((layout) => this.onLayout(layout), (message, status) => this.onFailure(message, status));
    this.told = new Map();
    this.shift = 0;
    // An older daemon does not tell them: the map then begins with a line.
    this.askingMembers = new Asking((members) => this.onMembers(members), (message) => this.onNoMembers(message));
  }

  stop() {
    this.asking.stop();
    this.askingMembers.stop();
  }

  legend() {
    const step = (at, text) => h("span", { class: `warm-${at}` }, text);
    return h("p", { class: "legend" }, "Share of the samples: ", ["none", "< 1%", "< 5%", "< 20%", "< 50%", "≥ 50%"].map((text, at) => step(at, text)),
      " hatched: bytes that no member has");
  }

  update(isOtherRoute) {
    const { app } = this;
    const { session } = app.route;
    if (this.id === null) return this.problem.replaceChildren(sentence("Choose an object first: its page has the link to its layout."));
    this.asking.ask(app, `${session} ${this.id}`, (signal) => app.source.layout(session, this.id, signal), ASK_OFTEN_MS);
    if (this.layout) {
      const body = narrowed(app.route, { object: this.layout.object });
      const key = JSON.stringify([session, body]);
      if (key !== this.toldKey) {
        this.told = new Map();
        this.shift = 0;
        this.notes = this.failed = null;
      }
      this.toldKey = key;
      this.isPart = Boolean(body.where || body.span);
      this.askingMembers.ask(app, key, (signal) => app.source.members(session, body, signal), ASK_OFTEN_MS);
    }
    if (isOtherRoute && this.layout) this.draw();
  }

  // What only the samples tell: where in a line most instances begin, threads, and who is first in a line.
  onMembers(members) {
    this.told = new Map(members.members.map((member) => [placeKey(member, member.name), member]));
    this.shift = members.alignment ?? 0;
    this.notes = members.notes;
    this.failed = null;
    this.draw();
  }

  onNoMembers(message) {
    this.failed = message;
    if (this.isPart) this.draw();
  }

  onFailure(message, status) {
    this.problem.replaceChildren(sentence(failureText(message, status, "the layout"), "failed"));
  }

  onLayout(layout) {
    const isFirst = !this.layout;
    this.layout = layout;
    this.paths = pathsOf(layout);
    this.problem.replaceChildren();
    this.content.hidden = false;
    if (isFirst) {
      this.title = `Layout of ${visible(typeText(layout.type), 100)}`;
      this.app.update(true);
    }
    this.draw();
  }

  draw() {
    const { layout, app } = this;
    const window = app.window();
    this.clock = app.snapshot && clockOf(app.snapshot);
    this.metricsOf = (member) => (this.isPart ? this.partOf(member) : member.metrics?.[window] ?? member.metrics?.all ?? NO_SAMPLES);
    const leaves = leavesOf(layout);
    this.total = layout.members.filter((member) => member.depth === 0).reduce((sum, member) => sum + this.metricsOf(member).samples, 0);
    const lines = Math.ceil((layout.size + this.shift) / layout.cache_line_bytes);
    const facts = [`${layout.size} B, ${plural(lines, "cache line")}, ${layout.hole_bytes} B holes, ${layout.padding_bytes} B padding.`,
      this.notes ? visible(this.notes.map((note) => `${note[0].toUpperCase()}${note.slice(1)}.`).join(" "), 400) : "Lines are counted from the beginning of the type, as if it began one."];
    if (layout.truncated) facts.push("There are more members than are shown.");
    if (this.isPart && !this.notes && !this.failed) facts.push("What the filter and the span leave is asked for …");
    else if (this.isPart) facts.push(this.failed ? `The filter cannot be asked: ${this.failed}.` : "It tells of the samples that the filter and the span leave.");
    this.facts.textContent = facts.join(" ");
    this.picture.replaceChildren(this.map(leaves));
    this.table.setRows(tableRows(layout, this.shift));
  }

  // The rows of the map: cache lines, but those that one long member fills alone are told as one gap.
  map(leaves) {
    const { layout } = this;
    const width = layout.cache_line_bytes;
    const n = Math.ceil((layout.size + this.shift) / width);
    const edge = (line) => line * width - this.shift;
    const rows = [];
    for (let line = 0; line < n && rows.length < MAX_LINES; line += 1) {
      const inside = leaves.filter((leaf) => leaf.begin < edge(line + 1) && leaf.end > edge(line));
      const alone = inside.length === 1 && inside[0].begin < edge(line) && inside[0].end > edge(line + 1) ? inside[0] : null;
      if (alone && rows.at(-1)?.gap === alone) rows.at(-1).last = line;
      else if (alone) rows.push({ gap: alone, first: line, last: line });
      else rows.push({ line, inside });
    }
    const height = TOP_PX + rows.length * LINE_PX + 4;
    const picture = svg("svg", { viewBox: `0 0 ${LEFT_PX + width * BYTE_PX + 4} ${height}`, role: "img", class: "map",
      "aria-label": `Bytes of ${visible(typeText(layout.type), 100)}, a cache line in each row; the table has the same` }, hatches("layout"));
    for (let byte = 0; byte < width; byte += 8) {
      picture.append(svg("text", { x: LEFT_PX + byte * BYTE_PX, y: 13, class: "ruler" }, String(byte)));
    }
    rows.forEach((row, at) => this.drawLine(picture, row, TOP_PX + at * LINE_PX));
    return picture;
  }

  drawLine(picture, row, y) {
    const { layout } = this;
    const width = layout.cache_line_bytes;
    const line = row.line ?? row.first;
    picture.append(svg("text", { x: 0, y: y + 18, class: "ruler" }, `line ${line}`), svg("text", { x: 0, y: y + 33, class: "ruler" }, `at ${Math.max(0, line * width - this.shift)}`));
    if (row.gap) {
      const text = `⋮ ${plural(row.last - row.first + 1, "line")} of ${visible(row.gap.path, 60)}, ${percent(row.gap.samples(this), this.total) || "0%"} in all`;
      picture.append(svg("text", { x: LEFT_PX + 8, y: y + 26, class: "label" }, text));
      return;
    }
    const begin = line * width - this.shift;
    const end = Math.min(layout.size, begin + width);
    const lastMember = Math.max(0, ...row.inside.map((leaf) => leaf.end));
    const known = this.layout.size - this.layout.padding_bytes;
    const ground = (from, to, kind) => {
      if (to <= from) return;
      const place = { x: LEFT_PX + (from - begin) * BYTE_PX, y: y + 2, width: (to - from) * BYTE_PX, height: LINE_PX - 6 };
      picture.append(svg("rect", { ...place, fill: `url(#layout-${kind})` }));
    };
    const inner = Math.max(begin, Math.min(end, Math.max(known, lastMember)));
    ground(Math.max(0, begin), inner, "hole");
    ground(inner, end, "padding");
    for (const [lane, lanes, leaf] of lanesOf(row.inside)) this.drawLeaf(picture, leaf, begin, end, y + 2, lane, lanes);
    picture.append(svg("rect", { x: LEFT_PX, y: y + 2, width: width * BYTE_PX, height: LINE_PX - 6, class: "border" }));
  }

  drawLeaf(picture, leaf, lineBegin, lineEnd, y, lane, lanes) {
    const from = Math.max(leaf.begin, lineBegin);
    const to = Math.min(leaf.end, lineEnd);
    const samples = leaf.samples(this);
    const share = ratio(samples, this.total);
    const x = LEFT_PX + (from - lineBegin) * BYTE_PX;
    const width = (to - from) * BYTE_PX;
    const height = (LINE_PX - 6) / lanes;
    const top = y + lane * height;
    const step = heatStep(share);
    const told = `${visible(leaf.path, 200)}: ${leaf.text}, ${percent(samples, this.total) || "0%"}`;
    const block = svg("g", { class: `block heat-${step}`, click: () => leaf.member.object_id !== undefined && this.app.go(this.app.link("object", { object: leaf.member.object_id })) },
      svg("title", null, told), svg("rect", { x, y: top, width, height, rx: 1 }));
    const isRest = leaf.begin < lineBegin;
    const name = fitted(`${isRest ? "… " : ""}${visible(leaf.path, 80)}`, width - 6);
    const isTall = height > 28;
    const number = samples ? percent(samples, this.total) : "";
    if (name) block.append(svg("text", { x: x + 4, y: top + (isTall ? 16 : height / 2 + 4), class: "label" }, isTall ? name : fitted(`${name} ${number}`, width - 6)));
    if (isTall && width >= 30) block.append(svg("text", { x: x + 4, y: top + 32, class: "label small" }, fitted(number, width - 4, 6.4)));
    picture.append(block);
  }

  memberTable() {
    const { app } = this;
    const metrics = (row) => (row.member ? this.metricsOf(row.member) : NO_SAMPLES);
    const name = (row) => (row.member ? row.member.name : row.text);
    const line = (row) => app.snapshot?.objects.find((one) => one.id === row.member?.object_id);
    return new PlainTable("Members by offset", [
      { title: "LINE", value: (row) => row.line }, { title: "OFF", value: (row) => row.offset },
      { title: "SIZE", value: (row) => row.size, shown: (row) => (row.member?.bits ? `${row.member.bits.width} bit` : String(row.size)) },
      { title: "TIME", csv: "TIME ns", value: (row) => timeOf(metrics(row), this.clock) ?? 0, shown: (row) => (metrics(row).samples && this.clock ? shortSpan(timeOf(metrics(row), this.clock)) : "") },
      { title: "SHARE", csv: "SAMPLES", value: (row) => metrics(row).samples, mark: (row) => `${metrics(row).samples}/${this.total}`,
        node: (row) => metrics(row).samples ? shareNode(percent(metrics(row).samples, this.total), ratio(metrics(row).samples, this.total)) : "" },
      { title: "R:W", value: (row) => readWrite(metrics(row)) },
      { title: "THR", value: (row) => this.toldOf(row)?.n_threads ?? "" },
      { title: "FIRST", value: (row) => this.firstOf(row), meaning: "share of the waits for its line in which it was touched first" },
      { title: "MEMBER", isText: true, isHead: true, value: name, mark: (row) => `${row.member?.depth} ${name(row)} ${row.member?.object_id}`, node: (row) => this.nameNode(row, name(row)) },
      { title: "TYPE", isText: true, value: (row) => typeText(row.member?.type ?? ""), shown: (row) => visible(typeText(row.member?.type ?? ""), 80) },
      { title: "", value: (row) => row.member?.object_id ?? "", node: (row) => line(row) && onlyButton(app, conditionOf(line(row)), visible(name(row), 60)) },
    ], { filterOf: (row) => line(row) && conditionOf(line(row)), rowClass: (row) => (row.member ? "" : "faint") });
  }

  toldOf(row) {
    return row.member && this.told.get(placeKey(row.member, this.paths.get(row.member)));
  }

  // The metrics of a member, of the samples that the address leaves.
  partOf(member) {
    const told = this.toldOf({ member });
    if (!told?.samples) return NO_SAMPLES;
    return { samples: told.samples, loads: told.reads, stores: told.writes, events: this.clock ? { [this.clock]: told.time_ns } : {} };
  }

  firstOf(row) {
    const touch = this.toldOf(row)?.first_touch;
    return touch?.waits ? percent(touch.first, touch.waits) || "0%" : "";
  }

  nameNode(row, name) {
    const text = visible(name, 120);
    const id = row.member?.object_id;
    const node = id === undefined ? h("span", null, text) : h("a", { href: this.app.link("object", { object: id }) }, text);
    node.style.paddingLeft = `${(row.member?.depth ?? 0) * 16}px`;
    return node;
  }
}

// A member's place, by which two lists of the same type agree.
function placeKey(member, path) {
  return `${member.offset} ${member.depth} ${member.bits?.first ?? ""} ${path ?? ""}`;
}

// The names of members with those around them.
function pathsOf(layout) {
  const around = [];
  return new Map(layout.members.map((member) => {
    around.length = member.depth;
    around.push(member.name);
    return [member, around.filter(Boolean).join(".")];
  }));
}

// The members that consist of nothing further, with their place in bytes (a bit-field has a part of one).
function leavesOf(layout) {
  const around = [];
  const leaves = [];
  layout.members.forEach((member, at) => {
    around.length = member.depth;
    around.push(member);
    const next = layout.members[at + 1];
    // What is in an array is told of its first element: the array itself is the block.
    const isInArray = around.slice(0, -1).some((one) => one.elements !== undefined);
    const hasParts = next && next.depth > member.depth && member.elements === undefined;
    if (hasParts || isInArray) return;
    const begin = member.offset + (member.bits ? member.bits.first / 8 : 0);
    const size = member.bits ? member.bits.width / 8 : member.size;
    if (!size) return;
    leaves.push({
      member, begin, end: begin + size, path: around.map((one) => one.name).join("."),
      text: `offset ${member.offset}, ${member.bits ? plural(member.bits.width, "bit") : `${member.size} B`}`,
      samples: (view) => view.metricsOf(member).samples,
    });
  });
  return leaves;
}

// Arms of a union overlap: they stand one below the other. What overlaps with nothing has the whole height.
function lanesOf(leaves) {
  const placed = [];
  let cluster = { ends: [] };
  for (const leaf of [...leaves].sort((one, other) => one.begin - other.begin)) {
    const isFree = (end) => end <= leaf.begin + 1e-9;
    if (cluster.ends.every(isFree)) cluster = { ends: [] };
    let lane = cluster.ends.findIndex(isFree);
    if (lane < 0) lane = cluster.ends.length;
    cluster.ends[lane] = leaf.end;
    placed.push([lane, cluster, leaf]);
  }
  return placed.map(([lane, { ends }, leaf]) => [lane, ends.length, leaf]);
}

// Members, and the bytes between them that nobody has.
function tableRows(layout, shift) {
  const rows = [];
  for (const member of layout.members) {
    const hole = member.hole_before;
    if (hole) rows.push({ line: lineAt(layout, member.offset - hole + shift), offset: member.offset - hole, size: hole, text: "(hole)" });
    rows.push({ member, line: lineAt(layout, member.offset + shift), offset: member.offset, size: member.size });
  }
  const padding = layout.padding_bytes;
  if (padding) rows.push({ line: lineAt(layout, layout.size - padding + shift), offset: layout.size - padding, size: padding, text: "(padding)" });
  return rows;
}

function lineAt(layout, offset) {
  return Math.floor(offset / layout.cache_line_bytes);
}
