// The columns of the tables of objects: what each is called, tells, shows and sorts by.

import { percent, ratio, rateText, shortSpan } from "./text.js";

// The event whose periods are nanoseconds on a CPU. Two of them tell of the same time: only the first one counts.
export function clockOf(snapshot) {
  return snapshot.events.find((event) => event.kind === "clock")?.name;
}

export function timeOf(metrics, clock) {
  return clock ? (metrics.events[clock] ?? 0) : null;
}

// `99:1`: reads and writes in a hundred of both; one that is there at all is never rounded away.
export function readWrite(metrics) {
  const whole = metrics.loads + metrics.stores;
  if (!whole) return "";
  let reads = Math.round(ratio(metrics.loads, whole) * 100);
  if (metrics.stores) reads = Math.min(99, reads);
  if (metrics.loads) reads = Math.max(1, reads);
  return `${reads}:${100 - reads}`;
}

// `both 93% type 7%`, most first.
export function evidenceText(metrics, most = 4) {
  const kinds = Object.entries(metrics.evidence ?? {}).filter(([, count]) => count > 0);
  const whole = kinds.reduce((sum, [, count]) => sum + count, 0);
  kinds.sort((one, other) => other[1] - one[1]);
  return kinds.slice(0, most).map(([kind, count]) => `${kind} ${Math.round(ratio(count, whole) * 100)}%`).join(" ");
}

function levelsText(metrics) {
  const levels = Object.entries(metrics.levels ?? {}).sort((one, other) => other[1] - one[1]);
  const whole = levels.reduce((sum, [, count]) => sum + count, 0);
  return levels.slice(0, 2).map(([level, count]) => `${level} ${Math.round(ratio(count, whole) * 100)}`).join(" ");
}

function optional(name, title, meaning) {
  const value = (metrics) => metrics[name] ?? 0;
  const shown = (metrics) => (metrics[name] === null || metrics[name] === undefined ? "" : String(metrics[name]));
  return { name, title, meaning, width: "5.5em", value, shown, isMeasured: (total) => total[name] > 0 };
}

// `shown` is the text of a cell, `value` what it sorts by; `scale` is { clock, total, seconds } of the window.
export const COLUMNS = [
  { name: "time", title: "TIME", width: "4.6em", meaning: "time on a CPU that its samples stand for, where a clock samples",
    value: (metrics, scale) => timeOf(metrics, scale.clock) ?? 0,
    shown: (metrics, scale) => (scale.clock ? shortSpan(timeOf(metrics, scale.clock)) : ""),
    isMeasured: (total, snapshot) => Boolean(clockOf(snapshot)) },
  { name: "share", title: "SHARE", width: "8.5em", meaning: "samples among those of all objects, unknown ones too, with a bar",
    value: (metrics) => metrics.samples, shown: (metrics, scale) => percent(metrics.samples, scale.total) },
  { name: "trend", title: "TREND", width: "70px", meaning: "samples over the last minute, in steps of three seconds",
    value: (metrics) => metrics.samples, shown: () => "" },
  { name: "samples", title: "SAMPLES", width: "6em", meaning: "samples",
    value: (metrics) => metrics.samples, shown: (metrics) => String(metrics.samples) },
  { name: "rate", title: "RATE/S", width: "5em", meaning: "samples a second",
    value: (metrics) => metrics.samples, shown: (metrics, scale) => rateText(ratio(metrics.samples, scale.seconds)) },
  { name: "rw", title: "R:W", width: "4.2em", meaning: "loads to stores in a hundred accesses; one that does both counts twice",
    value: (metrics) => ratio(metrics.loads, metrics.loads + metrics.stores), shown: readWrite },
  { name: "loads", title: "LOADS", width: "5.5em", meaning: "samples of instructions that read it",
    value: (metrics) => metrics.loads, shown: (metrics) => String(metrics.loads) },
  { name: "stores", title: "STORES", width: "5.5em", meaning: "samples of instructions that write it; many do both",
    value: (metrics) => metrics.stores, shown: (metrics) => String(metrics.stores) },
  { name: "latency", title: "LATENCY", width: "5.5em", meaning: "core cycles of a sample on average",
    value: (metrics) => ratio(metrics.latency ?? 0, metrics.samples),
    shown: (metrics) => (metrics.latency ? ratio(metrics.latency, metrics.samples).toFixed(0) : ""),
    isMeasured: (total) => total.latency > 0 },
  { name: "levels", title: "LEVELS", width: "9em", meaning: "where the data were found, most often first",
    value: (metrics) => metrics.samples, shown: levelsText,
    isMeasured: (total) => Object.keys(total.levels ?? {}).length > 0 },
  { ...optional("tlb_misses", "TLB", "samples that missed the first-level data TLB"), name: "tlb" },
  optional("locked", "LOCKED", "samples of locked accesses"),
  optional("hitm", "HITM", "samples that found the line modified in another core's cache"),
  optional("remote", "REMOTE", "samples whose data came from another node or socket"),
  { name: "threads", title: "THREADS", width: "5.5em", meaning: "threads that touched it since the session began",
    value: (metrics) => metrics.threads ?? 0, shown: (metrics) => (metrics.threads ? String(metrics.threads) : "") },
  { name: "evidence", title: "EVIDENCE", width: "10em",
    meaning: "what the name rests on: debug information (type), data address, both, or both at odds (conflict)",
    value: (metrics) => metrics.evidence?.both ?? 0, shown: (metrics) => evidenceText(metrics, 2) },
  { name: "line", title: "CODE", width: "10em", meaning: "a function that touches it",
    value: (metrics) => metrics.samples, shown: () => "" },
];

const USUAL = ["time", "share", "trend", "rw", "evidence"];
const NARROW = ["time", "share"];

// The columns that are shown: those of the address, else those that there is room for and something measures.
export function columnsShown(snapshot, chosen, isNarrowScreen) {
  const total = snapshot.objects[0]?.metrics.all ?? {};
  const names = chosen ? chosen.split(",") : isNarrowScreen ? NARROW : USUAL;
  const shown = COLUMNS.filter((column) => names.includes(column.name));
  return chosen ? shown : shown.filter((column) => isColumnMeasured(column, total, snapshot));
}

export function isColumnMeasured(column, total, snapshot) {
  return column.isMeasured ? column.isMeasured(total, snapshot) : true;
}
