// The last minutes as snapshots told them: samples of each object, and the accounts. Bounded, however long it runs.

const STEP_NS = 1e9;
const CELLS = 20;
const CELL_NS = 3e9;
const MAX_OBJECTS = 4096;
const MAX_MOMENTS = 310;

export class Trend {
  constructor() {
    this.moments = [];
  }

  note(snapshot) {
    const newest = this.moments.at(-1);
    // The daemon attached anew: the session begins again.
    if (newest && snapshot.elapsed_ns < newest.at) this.moments = [];
    else if (newest && snapshot.elapsed_ns < newest.at + STEP_NS * 0.9) return;
    const samples = new Map();
    for (const object of snapshot.objects.slice(0, MAX_OBJECTS)) samples.set(object.id, object.metrics.all.samples);
    this.moments.push({ at: snapshot.elapsed_ns, accounting: snapshot.accounting, samples });
    if (this.moments.length > MAX_MOMENTS) this.moments.shift();
    const old = snapshot.elapsed_ns - (CELLS + 1) * CELL_NS;
    for (const moment of this.moments) {
      if (moment.at >= old) break;
      moment.samples = null;
    }
  }

  // Samples of an object in each cell of the last minute, oldest first; null before the page was there.
  cells(id) {
    const now = this.moments.at(-1)?.at ?? 0;
    const sums = [];
    for (let cell = CELLS; cell >= 0; cell -= 1) {
      const moment = this.before(now - cell * CELL_NS);
      sums.push(moment?.samples ? (moment.samples.get(id) ?? 0) : null);
    }
    const first = this.moments.find((moment) => moment.samples);
    return sums.slice(1).map((end, at) => {
      if (end === null) return null;
      const begin = sums[at] ?? first?.samples.get(id) ?? 0;
      return Math.max(0, end - begin);
    });
  }

  // The newest moment that is not after a time.
  before(time) {
    let low = 0;
    let high = this.moments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.moments[middle].at <= time) low = middle + 1;
      else high = middle;
    }
    return this.moments[low - 1];
  }

  // The accounts of a window of so many seconds; of all where the page was not there at its beginning.
  accounting(snapshot, seconds) {
    const base = seconds ? this.before(snapshot.elapsed_ns - seconds * 1e9) : null;
    return base ? since(snapshot.accounting, base.accounting) : snapshot.accounting;
  }
}

// The samples that `now` has and `before` had not; what waits, waits now.
function since(now, before) {
  const less = (name) => Math.max(0, now[name] - before[name]);
  const unknown = {};
  for (const [reason, count] of Object.entries(now.unknown)) {
    unknown[reason] = reason === "pending" ? count : Math.max(0, count - (before.unknown[reason] ?? 0));
  }
  const lost = {};
  for (const [cause, count] of Object.entries(now.lost)) lost[cause] = Math.max(0, count - (before.lost[cause] ?? 0));
  return { ...now, kernel: less("kernel"), attributed: less("attributed"), not_memory: less("not_memory"), unknown, lost };
}

// The bars of a trend as the path of a picture of 60 by 16.
export function trendPath(cells) {
  const most = Math.max(1, ...cells.map((count) => count ?? 0));
  let path = "";
  cells.forEach((count, at) => {
    if (!count) return;
    const height = Math.max(1, Math.round((count / most) * 15));
    path += `M${at * 3} 16v-${height}h2v${height}z`;
  });
  return path;
}

export function sumOf(counts) {
  return Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0);
}
