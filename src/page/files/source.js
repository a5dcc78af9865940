// Where the page's data come from: the daemon's API, or the data that are in the file itself.

import { quoted } from "./text.js";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5000;
const NO_ANSWER = "this file has no answer to that question: it was made without it";
const TOKEN_KEY = "dataspace.token";

// The questions that the page asks of its own accord, where nothing is filtered. Each is a function of an object
// (a line of the snapshot) or of nothing; a file that is to answer them holds these and no others.
export const OWN_QUESTIONS = {
  seconds: () => ({ by: ["second"], limit: 10000 }),
  functions: () => ({ by: ["function"], limit: 100 }),
  reasons: () => ({ by: ["reason", "module", "function"], limit: 200, where: "reason != null" }),
  objectLines: (object) => ({ by: ["line", "function"], limit: 50, where: conditionOf(object) }),
  objectThreads: (object) => ({ by: ["thread", "comm"], limit: 50, where: conditionOf(object) }),
};

// The condition that a sample is of an object or of something inside of it.
export function conditionOf(object) {
  const text = quoted(object.object);
  if (object.kind === "total") return "true";
  // A descriptor ends with a bracket: what begins with it is inside.
  const hasParts = object.kind === "aggregate" || object.kind === "member" || object.object === "<Unknown>";
  return hasParts ? `object.startsWith(${text})` : `object == ${text}`;
}

// JSON with sorted keys and without what is not there, so that equal questions are equal texts.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).filter((key) => value[key] !== undefined && value[key] !== null);
  return `{${keys.sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

// A refusal, with the status of the answer: 0 where nobody answered.
export class SourceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export function keptToken() {
  return sessionStorage.getItem(TOKEN_KEY);
}

export function keepToken(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
}

// The token of the fragment goes into the tab's storage, and out of the address that people copy.
export function takeToken() {
  const match = /^#token=([^&]*)$/.exec(location.hash);
  if (!match) return;
  keepToken(decodeURIComponent(match[1]));
  history.replaceState(null, "", location.pathname);
}

export class LiveSource {
  constructor() {
    this.isFile = false;
    this.turn = Promise.resolve();
  }

  async sessions(signal) {
    return (await this.get("", signal)).sessions;
  }

  object(session, id, signal) {
    return this.inTurn(() => this.get(`/${encodeURIComponent(session)}/objects/${id}`, signal));
  }

  layout(session, id, signal) {
    return this.inTurn(() => this.get(`/${encodeURIComponent(session)}/objects/${id}/layout`, signal));
  }

  query(session, question, signal) {
    return this.inTurn(() => this.post(session, "query", question, signal));
  }

  sharing(session, body, signal) {
    return this.inTurn(() => this.post(session, "sharing", body, signal));
  }

  code(session, body, signal) {
    return this.inTurn(() => this.post(session, "code", body, signal));
  }

  members(session, body, signal) {
    return this.inTurn(() => this.post(session, "members", body, signal));
  }

  measurement(session, body, signal) {
    return this.inTurn(() => this.post(session, "measurement", body, signal));
  }

  // The daemon makes one expensive answer at a time for each client: more would be refused.
  inTurn(ask) {
    const answer = this.turn.then(ask);
    this.turn = answer.catch(() => {});
    return answer;
  }

  async get(path, signal) {
    return (await this.fetch(`/v1/sessions${path}`, { signal })).json();
  }

  async post(session, what, body, signal) {
    const path = `/v1/sessions/${encodeURIComponent(session)}/${what}`;
    return (await this.fetch(path, { method: "POST", body: canonical(body), signal })).json();
  }

  async fetch(path, options) {
    const headers = { Authorization: `Bearer ${keptToken() ?? ""}` };
    if (options.body) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { ...options, headers, cache: "no-store" }).catch((error) => {
      if (options.signal?.aborted) throw error;
      throw new SourceError("the server does not answer", 0);
    });
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => ({}));
    throw new SourceError(told.message ?? `the server answered ${answer.status}`, answer.status);
  }

  // Waits for a session that ended to be attached again: a daemon that is started anew ends all of them.
  async untilBack(session, end, signal) {
    while (!signal.aborted) {
      await sleep(LONGEST_PAUSE_MS, signal);
      const line = await this.get(`/${encodeURIComponent(session)}`, signal).catch((error) => {
        if (error.status === 401) throw error;
        return null;
      });
      if (line && GOING_ON.includes(line.state) && (line.name === session || line.target === end.target)) return;
    }
  }

  // Reads snapshots until the signal, and connects again where the server or the session goes away and comes back.
  async stream(session, intervalMs, onSnapshot, onState, signal) {
    const path = `/v1/sessions/${encodeURIComponent(session)}/stream?interval_ms=${intervalMs}`;
    let pause = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      try {
        onState({ state: "connecting" });
        const answer = await this.fetch(path, { signal });
        onState({ state: "live" });
        const end = await readEvents(answer.body, (snapshot) => {
          pause = FIRST_PAUSE_MS;
          onSnapshot(snapshot);
        }, signal);
        if (signal.aborted) return;
        if (end) {
          onState({ state: "ended", session: end });
          await this.untilBack(session, end, signal);
          continue;
        }
        onState({ state: "lost", message: "the server ended the stream", pause });
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 401) return onState({ state: "refused", message: error.message });
        onState({ state: "lost", message: error.message, pause });
      }
      await sleep(pause, signal);
      pause = Math.min(pause * 1.6, LONGEST_PAUSE_MS);
    }
  }
}

// Time without scrolling after which snapshots are read, and the longest that they wait for it.
const STILL_MS = 150;
const LONGEST_STILL_MS = 3000;

const GOING_ON = ["starting", "attached", "waiting"];

function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

let scrolledAt = -Infinity;
addEventListener("scroll", () => { scrolledAt = performance.now(); }, { capture: true, passive: true });

// Megabytes are read in no frame of scrolling: the server holds the next snapshot back as long as this one is not taken.
async function untilStill() {
  const began = performance.now();
  while (performance.now() - scrolledAt < STILL_MS && performance.now() - began < LONGEST_STILL_MS) {
    await new Promise((resolve) => { setTimeout(resolve, STILL_MS); });
  }
}

// Server-sent events off a body; gives the session of the event `end`, or null where the body just ended.
async function readEvents(body, onSnapshot, signal) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let parts = [];
  let tail = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return null;
    const text = decoder.decode(value, { stream: true });
    // A snapshot may come in hundreds of pieces: only the seam is searched, and pieces are joined once.
    if (!(tail + text).includes("\n\n")) {
      parts.push(text);
      tail = text.slice(-1) || tail;
      continue;
    }
    const events = (parts.join("") + text).split("\n\n");
    const rest = events.pop();
    parts = rest ? [rest] : [];
    tail = rest.slice(-1);
    let newest = null;
    let end = null;
    for (const event of events) {
      const name = /^event: *(.*)$/m.exec(event)?.[1];
      const data = /^data: *(.*)$/m.exec(event)?.[1];
      if (name === "end") end = data ? JSON.parse(data) : {};
      if (name === "snapshot") newest = data;
    }
    // Of several that came at once only the newest is worth reading.
    if (newest) {
      await untilStill();
      if (signal.aborted) return null;
      onSnapshot(JSON.parse(newest));
    }
    if (end) return end;
  }
}

// The data of a file that was made to be looked at without a server.
export class EmbeddedSource {
  constructor(data) {
    this.isFile = true;
    this.data = data;
    this.answers = new Map((data.answers ?? []).map(({ question, answer }) => [canonical(question), answer]));
  }

  async sessions() {
    return [this.data.session];
  }

  async stream(session, intervalMs, onSnapshot, onState) {
    onSnapshot(this.data.snapshot);
    onState({ state: "file" });
  }

  async object(session, id) {
    return told(this.data.objects?.[id]);
  }

  async layout(session, id) {
    return told(this.data.layouts?.[id]);
  }

  async query(session, question) {
    return told(this.answers.get(canonical(question)));
  }

  async sharing(session, body) {
    return told(isUnfiltered(body) ? this.data.sharing : null);
  }

  async code(session, body) {
    return told(isUnfiltered(body) ? held(this.data.code, body.function) : null);
  }

  async members(session, body) {
    return told(isUnfiltered(body) ? held(this.data.members, body.object) : null);
  }

  async measurement(session, body) {
    return told(isUnfiltered(body) ? this.data.measurement : null);
  }
}

// A function may be called as what all objects have.
function held(table, name) {
  return table && Object.hasOwn(table, name) ? table[name] : null;
}

function isUnfiltered(body) {
  return !body.where && !body.span;
}

function told(answer) {
  if (answer === undefined || answer === null) throw new SourceError(NO_ANSWER, 404);
  return answer;
}
