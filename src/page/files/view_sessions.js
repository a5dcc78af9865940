// The sessions of the daemon, to choose one.

import { h, sentence } from "./dom.js";
import { visible } from "./text.js";
import { PlainTable } from "./table.js";
import { downloadBar } from "./download.js";
import { ASK_OFTEN_MS, Asking, failureText } from "./asking.js";

export function sessionsView(app) {
  return new SessionsView(app);
}

class SessionsView {
  constructor(app) {
    this.app = app;
    this.title = "Sessions";
    this.problem = h("div", null, sentence("The sessions are asked for …"));
    this.table = new PlainTable("Sessions", [
      { title: "ID", value: (line) => line.id },
      { title: "NAME", isText: true, isHead: true, value: (line) => line.name ?? String(line.id), mark: (line) => `${line.id} ${line.name}`,
        node: (line) => h("a", { href: `#/${encodeURIComponent(line.name ?? line.id)}/objects` }, visible(line.name ?? `session ${line.id}`, 100)) },
      { title: "STATE", isText: true, value: (line) => line.state }, { title: "TARGET", isText: true, value: (line) => line.target, shown: (line) => visible(line.target, 160) },
      { title: "EVENTS", isText: true, value: (line) => line.events.join(" "), shown: (line) => visible(line.events.join(" "), 120) },
      { title: "FROM", isText: true, value: (line) => line.origin }, { title: "DETAIL", isText: true, value: (line) => line.detail ?? "", shown: (line) => visible(line.detail ?? "", 300) },
    ]);
    this.element = h("div", null, this.problem, this.table.element, downloadBar("sessions", { table: () => this.table.data(), data: () => this.sessions }));
    this.asking = new Asking((sessions) => this.onAnswer(sessions), (message, status) => this.onFailure(message, status));
    // No snapshots come here that would have it ask again.
    this.timer = setInterval(() => this.update(), ASK_OFTEN_MS);
  }

  stop() {
    clearInterval(this.timer);
    this.asking.stop();
  }

  update() {
    const { app } = this;
    const before = this.asking.isBusy;
    if (!before) this.asking.key = null;
    this.asking.ask(app, "sessions", (signal) => app.source.sessions(signal), 0);
  }

  onAnswer(sessions) {
    this.sessions = sessions;
    this.table.setRows(sessions);
    this.problem.replaceChildren(...(sessions.length ? [] : [sentence("The daemon has no session: attach one with `dataspace attach`.")]));
  }

  onFailure(message, status) {
    this.problem.replaceChildren(sentence(failureText(message, status, "the list of sessions"), "failed"));
  }
}
