// The rows of the objects view: a tree of objects out of a snapshot, or out of an answer of the history.

const EMPTY = { samples: 0, loads: 0, stores: 0, latency: null, tlb_misses: null, locked: null, hitm: null, remote: null, events: {} };
const OPTIONAL = ["latency", "tlb_misses", "locked", "hitm", "remote"];

function added(sum, other) {
  sum.samples += other.samples;
  sum.loads += other.loads;
  sum.stores += other.stores;
  for (const name of OPTIONAL) if (other[name]) sum[name] = (sum[name] ?? 0) + other[name];
  for (const [event, period] of Object.entries(other.events ?? other.period ?? {})) {
    sum.events[event] = (sum.events[event] ?? 0) + period;
  }
  return sum;
}

function emptySum() {
  return { ...EMPTY, events: {} };
}

function nodeOf(line, metrics, key = String(line.id)) {
  return { key, line, metrics, name: line.name, part: line.part ?? line.name, descriptor: line.object, children: [] };
}

// A row that is no object of the session: a value of a key.
function valueNode(key, name, metrics, kind) {
  return { key, line: null, metrics, name, part: name, descriptor: name, children: [], kind };
}

// The tree of the lines that have samples. `<Total>` is the header's, and what is in `<Scalars>` stands by itself.
function forest(lines, metricsOf, prefix = "") {
  const nodes = new Map();
  for (const line of lines) {
    const metrics = metricsOf(line);
    if (metrics.samples > 0 && line.kind !== "total") nodes.set(line.id, nodeOf(line, metrics, prefix + line.id));
  }
  const roots = [];
  for (const node of nodes.values()) {
    if (node.line.object === "<Scalars>") continue;
    const around = nodes.get(node.line.parent_id);
    if (around && around.line.object !== "<Scalars>") around.children.push(node);
    else roots.push(node);
  }
  return roots;
}

// The objects of a snapshot in one of its windows.
export function treeOfSnapshot(snapshot, window) {
  const metricsOf = (line) => line.metrics[window] ?? line.metrics.all;
  return { roots: forest(snapshot.objects, metricsOf), total: metricsOf(snapshot.objects[0] ?? { metrics: { all: EMPTY } }) };
}

// The lines of a snapshot by what they are found by: answers have thousands of groups.
function linesOf(snapshot) {
  const byObject = new Map(snapshot.objects.map((line) => [line.object, line]));
  const byId = new Map(snapshot.objects.map((line) => [line.id, line]));
  return { byObject, byId };
}

// The lines with the sums of an answer by object, which go to all that is around.
function sumsByLine(lines, rows) {
  const sums = new Map();
  const others = [];
  for (const row of rows) {
    let line = lines.byObject.get(row.key.at(-1));
    if (!line) {
      others.push(row);
      continue;
    }
    for (; line; line = lines.byId.get(line.parent_id)) {
      sums.set(line, added(sums.get(line) ?? emptySum(), row.metrics));
    }
  }
  return { sums, others };
}

// The rows of an answer: by object, by a key and object, or by variable and object.
export function treeOfAnswer(snapshot, answer, group, byVariable) {
  const total = added(emptySum(), answer.total);
  const lines = linesOf(snapshot);
  if (group) return { roots: groupedBy(lines, answer, group), total };
  if (byVariable) return { roots: variablesApart(lines, answer), total };
  return { roots: keptOnes(lines, answer.rows, ""), total };
}

function keptOnes(lines, rows, prefix) {
  const { sums, others } = sumsByLine(lines, rows);
  const kept = [...sums.keys()].sort((one, other) => one.id - other.id);
  const roots = forest(kept, (line) => sums.get(line), prefix);
  for (const row of others) {
    const name = keyText(row.key.at(-1));
    roots.push(valueNode(`${prefix}?${name}`, name, added(emptySum(), row.metrics), "other"));
  }
  return roots;
}

function parted(rows) {
  const groups = new Map();
  for (const row of rows) {
    const value = row.key[0];
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(row);
  }
  return groups;
}

function groupedBy(lines, answer, group) {
  return [...parted(answer.rows)].map(([value, rows]) => {
    const text = keyText(value);
    const node = valueNode(`=${text}`, text, emptySum(), "group");
    node.value = value;
    node.group = group;
    for (const row of rows) added(node.metrics, row.metrics);
    node.children = keptOnes(lines, rows, `${text}\n`);
    return node;
  });
}

function variablesApart(lines, answer) {
  return [...parted(answer.rows)].flatMap(([variable, rows]) => {
    const roots = keptOnes(lines, rows, `${variable}\n`);
    for (const root of roots) {
      root.variable = variable;
      if (variable !== null && root.line?.kind === "aggregate") root.suffix = ` · ${variable}`;
    }
    return roots;
  });
}

// A key's value for a person.
function keyText(value) {
  return value === null || value === undefined ? "(none)" : String(value);
}

// The rows in the order of the screen. `view` is { isFlat, names, text, folded, compare }.
export function treeRows(roots, view) {
  const rows = [];
  const text = view.text?.toLowerCase();
  if (view.isFlat) {
    const all = [];
    const walk = (nodes, suffix) => nodes.forEach((node) => {
      node.label = fullLabel(node, view) + (node.suffix ?? suffix);
      all.push(node);
      walk(node.children, node.suffix ?? suffix);
    });
    walk(roots, "");
    const kept = text ? all.filter((node) => hasText(node, text)) : all;
    kept.sort(view.compare);
    return kept.map((node, at) => ({ node, level: 1, hasParts: false, position: at + 1, size: kept.length }));
  }
  const walk = (nodes, level, around, isKept) => {
    const shown = text && !isKept ? nodes.filter((node) => holdsText(node, text)) : nodes;
    [...shown].sort(view.compare).forEach((node, at) => {
      const bottom = bottomOf(node);
      node.label = treeLabel(node, bottom, around, view);
      bottom.label = node.label;
      const hasParts = bottom.children.length > 0;
      // What was sought is seen even where it was folded.
      const isOpen = hasParts && (!view.folded.has(bottom.key) || Boolean(text));
      rows.push({ node: bottom, level, hasParts, isOpen, position: at + 1, size: shown.length });
      if (isOpen) walk(bottom.children, level + 1, bottom, isKept || (text && hasText(bottom, text)));
    });
  };
  walk(roots, 1, null, false);
  return rows;
}

// A row whose only part has all of its samples is one row with it.
function bottomOf(node) {
  let bottom = node;
  while (bottom.children.length === 1 && bottom.line && bottom.children[0].metrics.samples === bottom.metrics.samples) {
    bottom = bottom.children[0];
  }
  return bottom;
}

function fullLabel(node, view) {
  return view.names === "descriptor" ? node.descriptor : node.name;
}

function treeLabel(node, bottom, around, view) {
  const isTop = !around?.line;
  if (isTop || !bottom.line) return fullLabel(bottom, view) + (node.suffix ?? "");
  const text = fullLabel(bottom, view);
  const before = fullLabel(around, view);
  if (text.startsWith(before) && text.length > before.length) return text.slice(before.length);
  return view.names === "descriptor" ? text : node === bottom ? node.part : text;
}

function hasText(node, text) {
  return node.name.toLowerCase().includes(text) || node.descriptor.toLowerCase().includes(text);
}

function holdsText(node, text) {
  return hasText(node, text) || node.children.some((part) => holdsText(part, text));
}
