// JavaScript at work: objects, classes, closures, maps, strings, sorting, regular expressions, JSON.
// N is how many rounds.
let seed = 42;
function draw(below) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return seed % below;
}

class Tree {
  constructor() { this.root = null; this.size = 0; }
  insert(key) {
    this.size++;
    if (!this.root) { this.root = { key, left: null, right: null }; return; }
    let node = this.root;
    for (;;) {
      if (key === node.key) return;
      const side = key < node.key ? "left" : "right";
      if (!node[side]) { node[side] = { key, left: null, right: null }; return; }
      node = node[side];
    }
  }
  *walk(node) {
    if (node) { yield* this.walk(node.left); yield node.key; yield* this.walk(node.right); }
  }
}

let total = 0;
for (let round = 0; round < N; round++) {
  const tree = new Tree();
  for (let i = 0; i < 1000; i++) tree.insert(draw(5000));
  let seen = 0;
  for (const key of tree.walk(tree.root)) { total += key; if (++seen > 50) break; }

  const words = [];
  for (let i = 0; i < 600; i++) words.push("w" + draw(1000) + "-" + "x".repeat(draw(9)));
  words.sort();
  const counts = new Map();
  for (const word of words.join(" ").split(" ")) counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [word, count] of counts) total += count * word.length;
  total += (words.join(",").match(/w[0-9]+-xx/g) ?? []).length;

  const rows = [];
  for (let i = 0; i < 200; i++) rows.push({ id: i, name: "row" + i, tags: [i % 7, i % 3], on: i % 2 === 0 });
  total += JSON.parse(JSON.stringify(rows)).filter((row) => row.on).map((row) => row.tags[0])
    .reduce((a, b) => a + b, 0);

  const size = 16, a = [], b = [];
  for (let i = 0; i < size * size; i++) { a.push(i + 0.5); b.push(size - i); }
  for (let i = 0; i < size; i++)
    for (let j = 0; j < size; j++) {
      let sum = 0;
      for (let k = 0; k < size; k++) sum += a[i * size + k] * b[k * size + j];
      total += sum;
    }
  const adders = [];
  for (let i = 0; i < 300; i++) adders.push((x) => { total += x; return i + x; });
  let x = 0;
  for (const adder of adders) x = adder(x) % 1000;
}
total;
