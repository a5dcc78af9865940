// The treemap: memory time by type and member, as areas; and its table.

import { h, sentence, svg } from "./dom.js";
import { percent, ratio, shortSpan, visible } from "./text.js";
import { isNarrow } from "./route.js";
import { clockOf, timeOf } from "./column.js";
import { conditionOf } from "./source.js";
import { fitted, heatStep } from "./heat.js";
import { treeOfAnswer, treeOfSnapshot } from "./tree.js";
import { objectsQuestion } from "./view_objects.js";
import { PlainTable, onlyButton, shareNode } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_OFTEN_MS, Asking, failureText } from "./asking.js";

const MAX_BLOCKS = 300;
const HEAD_PX = 18;

export function treemapView(app) {
  return new TreemapView(app);
}

class TreemapView {
  constructor(app) {
    this.app = app;
    this.title = "Treemap";
    this.path = h("p", { class: "path" });
    this.problem = h("div");
    this.picture = h("div", { class: "picture" });
    this.table = this.partTable();
    this.element = h("div", null, this.path, this.problem, h("div", { class: "pair" }, this.picture, this.table.element),
      downloadBar("treemap", { table: () => this.table.data(), data: () => this.answer ?? app.snapshot, picture: () => this.picture.querySelector("svg") }));
    this.asking = new Asking((answer) => {
      this.answer = answer;
      this.draw();
    }, (message, status) => this.problem.replaceChildren(sentence(failureText(message, status, "the history's answer"), "failed")));
  }

  stop() {
    this.asking.stop();
  }

  update() {
    const { app } = this;
    if (!app.snapshot) return this.problem.replaceChildren(sentence("No snapshot has come yet."));
    if (!isNarrow(app.route)) {
      this.asking.stop();
      this.answer = null;
      return this.draw();
    }
    const question = objectsQuestion(app);
    const key = JSON.stringify([app.route.session, question]);
    if (key !== this.asking.key) this.answer = null;
    this.asking.ask(app, key, (signal) => app.source.query(app.route.session, question, signal), ASK_OFTEN_MS);
    if (this.answer) this.draw();
  }

  draw() {
    const { app } = this;
    const params = app.route.params;
    const tree = this.answer ? treeOfAnswer(app.snapshot, this.answer, params.get("group"), params.has("variables")) : treeOfSnapshot(app.snapshot, app.window());
    const way = wayTo(tree.roots, params.get("root"));
    const parts = way.at(-1)?.children ?? tree.roots;
    this.total = tree.total.samples;
    this.clock = clockOf(app.snapshot);
    this.problem.replaceChildren(...(parts.length ? [] : [sentence("No samples are left to draw here.")]));
    const key = JSON.stringify([app.route.params.toString(), way.map((node) => node.key)]);
    if (key !== this.pathKey) {
      this.pathKey = key;
      this.path.replaceChildren(h("a", { href: app.link("treemap", { root: null }) }, "All objects"),
        ...way.flatMap((node) => [" › ", h("a", { href: app.link("treemap", { root: node.key }) }, visible(node.name, 80))]));
    }
    this.drawPicture(parts);
    this.table.setRows([...parts].sort((one, other) => other.metrics.samples - one.metrics.samples));
  }

  drawPicture(parts) {
    const [width, height] = this.app.isNarrowScreen() ? [370, 480] : [900, 520];
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "treemap", "aria-label": "Areas by samples; the table has the same" });
    this.left = MAX_BLOCKS;
    this.fill(picture, parts, { x: 0, y: 0, width, height }, 0);
    this.picture.replaceChildren(picture);
  }

  fill(picture, nodes, area, depth) {
    const sorted = [...nodes].sort((one, other) => other.metrics.samples - one.metrics.samples);
    for (const [node, box] of squarified(sorted, area)) {
      if (this.left <= 0 || box.width < 2 || box.height < 2) continue;
      this.left -= 1;
      this.block(picture, node, box, depth);
    }
  }

  block(picture, node, box, depth) {
    const { app } = this;
    const { samples } = node.metrics;
    const share = ratio(samples, this.total);
    const hasInside = depth === 0 && node.children.length > 0 && box.height > 40 && box.width > 40;
    const text = `${visible(depth ? node.part : node.name, 80)} ${percent(samples, this.total)}`;
    const group = svg("g", { class: `block heat-${hasInside ? 0 : heatStep(share)}`, click: () => app.go(this.linkOf(node)) },
      svg("title", null, `${visible(node.name, 200)}: ${percent(samples, this.total)}`),
      svg("rect", { x: box.x + 1, y: box.y + 1, width: Math.max(0, box.width - 2), height: Math.max(0, box.height - 2) }));
    if (box.height > HEAD_PX) group.append(svg("text", { x: box.x + 6, y: box.y + 14, class: "label" }, fitted(text, box.width - 8)));
    picture.append(group);
    if (hasInside) this.fill(picture, node.children, { x: box.x + 2, y: box.y + HEAD_PX, width: box.width - 4, height: box.height - HEAD_PX - 2 }, 1);
  }

  linkOf(node) {
    if (node.children.length) return this.app.link("treemap", { root: node.key });
    return node.line ? this.app.link("object", { object: node.line.id }) : this.app.link("treemap");
  }

  partTable() {
    const { app } = this;
    const condition = (node) => node.line && conditionOf(node.line);
    return new PlainTable("Objects by samples", [
      { title: "TIME", csv: "TIME ns", value: (node) => timeOf(node.metrics, this.clock) ?? 0, shown: (node) => (this.clock ? shortSpan(timeOf(node.metrics, this.clock)) : "") },
      { title: "SHARE", csv: false, value: (node) => node.metrics.samples, mark: (node) => `${node.metrics.samples}/${this.total}`,
        node: (node) => shareNode(percent(node.metrics.samples, this.total), ratio(node.metrics.samples, this.total)) },
      { title: "SAMPLES", value: (node) => node.metrics.samples },
      { title: "OBJECT", isText: true, isHead: true, value: (node) => node.name, mark: (node) => `${node.key} ${node.children.length > 0}`,
        node: (node) => h("a", { href: this.linkOf(node) }, visible(node.name, 120), node.children.length ? " ›" : "") },
      { title: "", value: (node) => node.key, node: (node) => condition(node) && onlyButton(app, condition(node), visible(node.name, 60)) },
    ], { filterOf: condition });
  }
}

// The nodes from the top to one with a key, or none.
function wayTo(nodes, key) {
  if (!key) return [];
  for (const node of nodes) {
    if (node.key === key) return [node];
    const way = wayTo(node.children, key);
    if (way.length) return [node, ...way];
  }
  return [];
}

// Areas in proportion to samples, as near to squares as can be (Bruls, Huizing and van Wijk, 2000).
function squarified(nodes, area) {
  const placed = [];
  let rest = { ...area };
  let left = nodes.reduce((sum, node) => sum + node.metrics.samples, 0);
  let at = 0;
  while (at < nodes.length && left > 0 && rest.width > 0 && rest.height > 0) {
    const scale = (rest.width * rest.height) / left;
    const side = Math.min(rest.width, rest.height);
    let sum = 0;
    let best = Infinity;
    let end = at;
    while (end < nodes.length) {
      const size = nodes[end].metrics.samples * scale;
      const worst = worstRatio(nodes[at].metrics.samples * scale, size, sum + size, side);
      if (worst > best) break;
      best = worst;
      sum += size;
      end += 1;
    }
    const thick = sum / side;
    let offset = 0;
    for (const node of nodes.slice(at, end)) {
      const length = (node.metrics.samples * scale) / thick;
      placed.push([node, rest.width >= rest.height
        ? { x: rest.x, y: rest.y + offset, width: thick, height: length }
        : { x: rest.x + offset, y: rest.y, width: length, height: thick }]);
      offset += length;
      left -= node.metrics.samples;
    }
    if (rest.width >= rest.height) rest = { ...rest, x: rest.x + thick, width: rest.width - thick };
    else rest = { ...rest, y: rest.y + thick, height: rest.height - thick };
    at = end;
  }
  return placed;
}

function worstRatio(largest, smallest, sum, side) {
  const square = sum * sum;
  return Math.max((side * side * largest) / square, square / (side * side * smallest));
}
