// The page: what it shows by its address, the session it listens to, its keys.
//
// Order of the modules, where they are joined into one file:
//   text.js dom.js source.js route.js trend.js column.js heat.js tree.js treegrid.js download.js asking.js table.js
//   view_objects.js view_object.js view_layout.js view_treemap.js view_time.js view_threads.js view_code.js
//   view_measurement.js view_accounts.js view_sessions.js view_help.js shell.js app.js

import { h, sentence } from "./dom.js";
import { isNarrow, linkTo, parseRoute } from "./route.js";
import { EmbeddedSource, LiveSource, keepToken, keptToken, takeToken } from "./source.js";
import { Trend } from "./trend.js";
import { visible } from "./text.js";
import { objectsView } from "./view_objects.js";
import { objectView } from "./view_object.js";
import { layoutView } from "./view_layout.js";
import { treemapView } from "./view_treemap.js";
import { timeView } from "./view_time.js";
import { threadsView } from "./view_threads.js";
import { codeView } from "./view_code.js";
import { measurementView } from "./view_measurement.js";
import { accountsView } from "./view_accounts.js";
import { sessionsView } from "./view_sessions.js";
import { helpView } from "./view_help.js";
import { Shell } from "./shell.js";

const INTERVAL_MS = 1000;
const ANNOUNCE_EVERY_MS = 10000;
const USUAL_WINDOW = "10s";
const NARROW_SCREEN = matchMedia("(max-width: 640px)");

const VIEWS = {
  objects: objectsView, object: objectView, layout: layoutView, treemap: treemapView, time: timeView, threads: threadsView,
  code: codeView, measurement: measurementView, accounts: accountsView, sessions: sessionsView, help: helpView,
};

class App {
  constructor(source) {
    this.source = source;
    this.route = parseRoute(location.hash);
    this.trend = new Trend();
    this.folded = new Set();
    this.snapshot = null;
    this.newest = null;
    this.isPaused = false;
    this.connection = { state: "connecting" };
    this.announcedAt = -ANNOUNCE_EVERY_MS;
    this.shell = new Shell(this);
  }

  get isLive() {
    return this.connection.state === "live";
  }

  start() {
    addEventListener("hashchange", () => this.onRoute());
    document.addEventListener("keydown", (event) => this.onKey(event));
    NARROW_SCREEN.addEventListener("change", () => this.update(true));
    this.onRoute();
  }

  isNarrowScreen() {
    return NARROW_SCREEN.matches;
  }

  link(view, changes) {
    return linkTo(this.route, view, changes);
  }

  go(hash, isReplaced = false) {
    if (hash === location.hash) return;
    if (!isReplaced) {
      location.hash = hash;
      return;
    }
    history.replaceState(null, "", hash);
    this.onRoute();
  }

  // The window of the address, as far as the session has it.
  window() {
    const windows = this.windows();
    const asked = this.route.params.get("window");
    if (windows.includes(asked)) return asked;
    // Of what is over the last seconds are no better than others.
    return windows.includes(USUAL_WINDOW) && this.newest.target.running ? USUAL_WINDOW : "all";
  }

  // All windows of the session, shortest first.
  windows() {
    const names = Object.keys(this.newest?.objects[0]?.metrics ?? { all: null }).filter((name) => name !== "all");
    return [...names.sort((one, other) => parseInt(one, 10) - parseInt(other, 10)), "all"];
  }

  filterBy(condition) {
    const where = [...this.route.params.getAll("where").filter((one) => one !== condition), condition];
    this.go(this.link(this.route.view === "object" ? "objects" : this.route.view, { where, group: null }));
  }

  unfilter() {
    const { params } = this.route;
    const where = params.getAll("where");
    if (where.length) this.go(this.link(this.route.view, { where: where.slice(0, -1) }));
    else if (params.has("span")) this.go(this.link(this.route.view, { span: null }));
    else if (params.has("text")) this.go(this.link(this.route.view, { text: null }));
    else if (params.has("group")) this.go(this.link(this.route.view, { group: null }));
    else if (params.has("variables")) this.go(this.link(this.route.view, { variables: null }));
    else return false;
    return true;
  }

  // The line of an object by its number.
  lineOf(id) {
    return this.snapshot?.objects.find((line) => String(line.id) === String(id));
  }

  // What a descriptor is called.
  nameOf(descriptor) {
    return this.snapshot?.objects.find((line) => line.object === descriptor)?.name ?? descriptor;
  }

  async onRoute() {
    // A token may also come later, by a link that is opened in this tab.
    if (location.hash.startsWith("#token=")) takeToken();
    const before = this.route;
    this.route = parseRoute(location.hash);
    if (!this.source.isFile && !keptToken()) return this.askToken("");
    if (this.route.view === "") return this.chooseSession();
    if (!VIEWS[this.route.view]) return this.show(null);
    if (this.route.session !== this.listenedTo) this.listen();
    const isSame = this.view && before.view === this.route.view && before.session === this.route.session &&
      before.params.get("object") === this.route.params.get("object");
    if (!isSame) this.show(VIEWS[this.route.view]);
    const isFirst = !this.isShown;
    this.isShown = true;
    this.update(true);
    if (!isSame && !isFirst) this.view.focus?.();
  }

  // With one session there is nothing to choose.
  async chooseSession() {
    try {
      const sessions = await this.source.sessions();
      const is = sessions.length === 1;
      this.go(is ? `#/${encodeURIComponent(sessions[0].name ?? sessions[0].id)}/objects` : "#/sessions", true);
    } catch (error) {
      if (error.status === 401) return this.askToken(error.message);
      this.go("#/sessions", true);
    }
  }

  listen() {
    this.stopper?.abort();
    this.stopper = new AbortController();
    this.listenedTo = this.route.session;
    this.trend = new Trend();
    this.folded.clear();
    this.snapshot = this.newest = null;
    this.isPaused = false;
    if (this.listenedTo === null) return;
    this.source.stream(this.listenedTo, INTERVAL_MS, (snapshot) => this.onSnapshot(snapshot), (state) => this.onState(state), this.stopper.signal);
  }

  onSnapshot(snapshot) {
    this.newest = snapshot;
    this.trend.note(snapshot);
    if (!this.isPaused) {
      this.snapshot = snapshot;
      this.announceHottest();
    }
    this.update(false);
  }

  onState(state) {
    const was = this.connection.state;
    this.connection = state;
    if (state.state === "refused") return this.onRefused(state.message);
    if (state.state === "lost" && was !== "lost" && was !== "connecting") this.announce("The connection is lost.", true);
    if (state.state === "live" && this.wasLost) this.announce("The connection is back.", true);
    if (state.state === "lost") this.wasLost = true;
    if (state.state === "live") this.wasLost = false;
    if (state.state === "ended") this.announce("The session ended: these are its last totals.", true);
    this.update(false);
  }

  onRefused(message) {
    this.stopper?.abort();
    this.listenedTo = undefined;
    this.askToken(message);
  }

  pause() {
    this.isPaused = !this.isPaused;
    if (!this.isPaused) this.snapshot = this.newest;
    this.update(true);
  }

  announceHottest() {
    if (isNarrow(this.route)) return;
    const window = this.window();
    const samples = (line) => line.metrics[window]?.samples ?? 0;
    const own = this.snapshot.objects.filter((line) => line.kind !== "total" && line.kind !== "artificial");
    const hottest = own.reduce((most, line) => (!most || samples(line) > samples(most) ? line : most), null);
    if (!hottest || hottest.id === this.hottest) return;
    if (this.announce(`Hottest object: ${visible(hottest.name, 100)}`, false)) this.hottest = hottest.id;
  }

  // Says something to who does not see the page: at most once in ten seconds, unless it cannot wait.
  announce(text, isUrgent) {
    const now = performance.now();
    if (now - this.announcedAt < ANNOUNCE_EVERY_MS) {
      if (!isUrgent) return false;
      clearTimeout(this.later);
      this.later = setTimeout(() => this.announce(text, false), ANNOUNCE_EVERY_MS - (now - this.announcedAt) + 10);
      return false;
    }
    this.announcedAt = now;
    document.getElementById("live").textContent = text;
    return true;
  }

  show(make) {
    this.view?.stop?.();
    this.view = make ? make(this) : { element: sentence(`There is no view “${visible(this.route.view, 60)}”.`), title: "Not found", update() {} };
    this.shell.show(this.view);
  }

  update(isOtherRoute) {
    this.shell.update(isOtherRoute);
    this.view?.update(isOtherRoute);
  }

  askToken(message) {
    const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true, size: 40 });
    const use = (event) => {
      event.preventDefault();
      if (!field.value.trim()) return;
      keepToken(field.value.trim());
      this.view = null;
      this.onRoute();
    };
    this.view?.stop?.();
    this.view = { title: "Token", update() {}, element: h("form", { class: "token", submit: use },
      h("p", null, "This page shows what the daemon knows, and the daemon wants a token for that. It is printed by ",
        h("code", null, "dataspace web"), ", as part of the address, or stands in the daemon's token file."),
      message && sentence(`The server refused: ${visible(message, 200)}`, "failed"),
      h("label", { for: "token" }, "Token"), field, h("button", { type: "submit" }, "Use it")) };
    this.shell.show(this.view);
    this.shell.update(true);
    field.focus();
  }

  onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    const target = event.target;
    if (target.closest("input, select, textarea, [contenteditable]") && event.key !== "Escape") return;
    if (target.closest("button, a, summary") && (event.key === " " || event.key === "Enter")) return;
    if (event.key.length === 1 && !this.shell.hasKeys()) return;
    const run = this.filterKey(event) ?? this.view?.keys?.[event.key] ?? this.shell.keys[event.key];
    if (!run) return;
    event.preventDefault();
    run(event);
  }

  // `f` in a table means the row that has the focus.
  filterKey(event) {
    const row = event.key === "f" ? event.target.closest("tr") : null;
    return row?.filter ? () => this.filterBy(row.filter) : undefined;
  }
}

function start() {
  const embedded = document.getElementById("embedded");
  if (!embedded) takeToken();
  new App(embedded ? new EmbeddedSource(JSON.parse(embedded.textContent)) : new LiveSource()).start();
}

// The first picture comes before all work. A tab that is not seen has none.
if (document.hidden) start();
else requestAnimationFrame(() => setTimeout(start));
