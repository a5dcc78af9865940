// Text for a person: numbers with units, and foreign names made safe to show.

const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

// Names come from the profiled program: what would be hidden, obeyed or reordered is written as \u{…}.
export function visible(name, most = 400) {
  const text = String(name ?? "");
  const cut = text.length > most ? text.slice(0, most) + "…" : text;
  return cut.replace(UNSAFE, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);
}

export function ratio(part, whole) {
  return whole > 0 ? part / whole : 0;
}

// `part` of `whole` as `12.3%`; nothing where there is no whole.
export function percent(part, whole) {
  if (!whole) return "";
  const share = (part / whole) * 100;
  return part > 0 && share < 0.05 ? "<0.1%" : `${share.toFixed(1)}%`;
}

// A time in at most six letters: `340ms`, `1.24s`, `3:07`, `12h`.
export function shortSpan(ns) {
  const s = ns / 1e9;
  if (s === 0) return "0";
  if (s < 0.0009995) return `${(s * 1e6).toFixed(0)}us`;
  if (s < 0.9995) return `${(s * 1e3).toFixed(0)}ms`;
  if (s < 9.995) return `${s.toFixed(2)}s`;
  if (s < 99.95) return `${s.toFixed(1)}s`;
  if (s < 6000) return `${Math.floor(s / 60)}:${pad(s % 60)}`;
  return `${(s / 3600).toFixed(0)}h`;
}

function pad(seconds) {
  return String(Math.floor(seconds)).padStart(2, "0");
}

// A span of time: `0.4 s`, `12.3 s`, `3:07`, `2:03:07`.
export function longSpan(ns) {
  const s = Math.floor(ns / 1e9);
  const hours = Math.floor(s / 3600);
  const minutes = Math.floor(s / 60) % 60;
  if (hours) return `${hours}:${pad(minutes)}:${pad(s % 60)}`;
  if (minutes) return `${minutes}:${pad(s % 60)}`;
  return `${s}.${Math.floor(ns / 1e8) % 10} s`;
}

export function byteSize(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 10240 && unit + 1 < units.length) {
    value = Math.floor(value / 1024);
    unit += 1;
  }
  return `${value} ${units[unit]}`;
}

export function rateText(value) {
  return value !== 0 && value < 9.95 ? value.toFixed(1) : value.toFixed(0);
}

// The last part of a path, since a column has no room for more.
export function fileName(path) {
  const text = String(path ?? "");
  return text.slice(text.lastIndexOf("/") + 1);
}

// A type's descriptor as source would have it: `pointer+structure:order` is `struct order *`.
export function typeText(type) {
  const text = String(type ?? "");
  const array = /^array(\[[^\]]*\]):(.*)$/s.exec(text);
  if (array) return `${typeText(array[2])} ${array[1]}`;
  if (text.startsWith("pointer+")) return `${typeText(text.slice(8))} *`;
  // What a program named may have underscores of its own.
  if (!text.includes(":")) return text.replaceAll("_", " ");
  return text.replace(/^(const|volatile)\+/, "$1 ").replace(/^structure:/, "struct ").replace(/^enumeration:/, "enum ").replace(/^(union|class):/, "$1 ");
}

// A text as an expression has it.
export function quoted(text) {
  const escaped = String(text).replace(/["\\]/g, "\\$&");
  return `"${escaped.replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("\t", "\\t")}"`;
}

export function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
