// What is around every view: the header with the accounts, the views, the window and the filters, the connection.

import { button, choice, h, setAttribute, setText } from "./dom.js";
import { longSpan, percent, ratio, visible } from "./text.js";
import { sumOf } from "./trend.js";
import { clockOf, timeOf } from "./column.js";
import { windowSeconds } from "./view_objects.js";

const THEME_KEY = "dataspace.theme";
const KEYS_KEY = "dataspace.keys";
const MAIN_VIEWS = [
  ["objects", "Objects", null], ["treemap", "Treemap", "x"], ["time", "Time", "h"], ["threads", "Threads", "t"], ["code", "Code", "c"],
  ["measurement", "Measurement", "m"], ["accounts", "Cost and accounts", "!"], ["sessions", "Sessions", "d"], ["help", "Help", "?"],
];
const THEMES = [["auto", "auto"], ["light", "light"], ["dark", "dark"]];

export class Shell {
  constructor(app) {
    this.app = app;
    this.header = document.getElementById("header");
    this.nav = document.getElementById("views");
    this.main = document.getElementById("main");
    this.footer = document.getElementById("footer");
    // The link would else be taken for the address of a view.
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.main.focus();
    });
    this.applyTheme(remembered(THEME_KEY) ?? "auto");
    this.drawHeader();
    this.keys = this.allKeys();
  }

  hasKeys() {
    return remembered(KEYS_KEY) !== "off";
  }

  setKeys(isOn) {
    remember(KEYS_KEY, isOn ? null : "off");
  }

  applyTheme(theme) {
    document.documentElement.dataset.theme = theme;
    remember(THEME_KEY, theme === "auto" ? null : theme);
    this.theme = theme;
  }

  allKeys() {
    const { app } = this;
    const keys = {
      "/": () => this.filterField.focus(), F: () => app.unfilter(), p: () => app.pause(), " ": () => app.pause(),
      w: () => this.nextWindow(), Escape: (event) => this.back(event), q: (event) => this.back(event),
      0: () => app.go(app.link(app.route.view, { span: null })),
    };
    for (const [view, , key] of MAIN_VIEWS) if (key) keys[key] = () => this.open(view);
    for (let at = 1; at <= 5; at += 1) keys[at] = () => this.setWindow(app.windows()[at - 1]);
    return keys;
  }

  open(view) {
    const { app } = this;
    app.go(app.route.session === null && view !== "help" && view !== "sessions" ? "#/sessions" : app.link(view));
  }

  // Leaves a field, then a page, then takes filters off.
  back(event) {
    if (event.target.matches?.("input, select, textarea")) {
      event.target.blur();
      this.main.focus();
      return;
    }
    const { app } = this;
    if (app.route.view !== "objects" && app.route.session !== null) app.go(app.link("objects"));
    else if (event.key === "Escape") app.unfilter();
  }

  nextWindow() {
    const windows = this.app.windows();
    this.setWindow(windows[(windows.indexOf(this.app.window()) + 1) % windows.length]);
  }

  setWindow(window) {
    if (window) this.app.go(this.app.link(this.app.route.view, { window }));
  }

  drawHeader() {
    this.heading = h("h1", null, "dataspace");
    this.facts = h("p", { class: "facts" });
    this.accounts = h("p", { class: "accounts" });
    this.connection = h("span", { class: "connection" });
    this.pauseButton = button("Pause", () => this.app.pause(), { "aria-pressed": "false", title: "stop the picture, not the sampling (p)" });
    this.header.replaceChildren(
      h("div", { class: "title" }, this.heading, h("div", { class: "state" }, this.connection, this.pauseButton,
        choice("Theme", THEMES, this.theme, (theme) => this.applyTheme(theme)))),
      this.facts, this.accounts);
    this.links = MAIN_VIEWS.map(([view, text, key]) => h("a", { "data-view": view, title: key ? `key ${key}` : null }, text));
    this.windowBox = h("div", { class: "windows", role: "group", "aria-label": "Window" });
    this.filterField = h("input", { type: "search", size: 22, spellcheck: "false", autocomplete: "off", placeholder: "text, or =expression",
      title: "objects with this text in their name, or after = an expression over samples (/)", change: () => this.applyFilter() });
    this.chips = h("ul", { class: "chips", "aria-label": "Filters" });
    this.bar = h("div", { class: "bar-of-filters" }, this.windowBox, h("label", { class: "field" }, h("span", null, "Filter"), this.filterField), this.chips);
    this.nav.replaceChildren(h("ul", null, this.links.map((link) => h("li", null, link))));
    this.viewBox = h("div", { id: "view" });
    this.viewHeading = h("h2", null, "");
    this.main.replaceChildren(this.bar, this.viewHeading, this.viewBox);
    this.footer.replaceChildren(h("p", null, "dataspace · which data objects a program spends its memory time on"));
  }

  applyFilter() {
    const text = this.filterField.value.trim();
    const { app } = this;
    if (text.startsWith("=")) {
      this.filterField.value = "";
      if (text.length > 1) app.filterBy(text.slice(1).trim());
    } else app.go(app.link(text && app.route.view !== "treemap" ? "objects" : app.route.view, { text: text || null }));
  }

  show(view) {
    const isFirst = !this.viewBox.firstChild;
    this.viewBox.replaceChildren(view.element);
    setText(this.viewHeading, view.title);
    if (!isFirst) this.main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  update(isOtherRoute) {
    const { app } = this;
    if (isOtherRoute) this.drawPlace();
    this.drawConnection();
    const hasSession = app.route.session !== null && Boolean(app.snapshot);
    this.bar.hidden = app.route.session === null || !VIEWS_WITH_FILTERS.includes(app.route.view);
    this.facts.hidden = this.accounts.hidden = !hasSession;
    if (hasSession) this.drawSession();
    else setText(this.heading, app.route.session === null ? "dataspace" : `dataspace · ${visible(app.route.session, 80)}`);
    this.windowBox.hidden = !VIEWS_WITH_WINDOWS.includes(app.route.view);
    this.drawWindows();
  }

  drawPlace() {
    const { app } = this;
    const { route } = app;
    for (const link of this.links) {
      const view = link.dataset.view;
      const isAnywhere = view === "help" || view === "sessions";
      link.parentNode.hidden = route.session === null && !isAnywhere;
      setAttribute(link, "href", app.link(view));
      setAttribute(link, "aria-current", view === route.view ? "page" : null);
    }
    if (document.activeElement !== this.filterField) this.filterField.value = route.params.get("text") ?? "";
    if (app.view) setText(this.viewHeading, app.view.title);
    this.drawChips();
    document.title = [app.view?.title, route.session && visible(route.session, 60), "dataspace"].filter(Boolean).join(" · ");
  }

  drawChips() {
    const { app } = this;
    const { params } = app.route;
    const where = params.getAll("where");
    const chips = where.map((one, at) => this.chip(this.conditionText(one), one, { where: where.filter((_, other) => other !== at) }));
    if (params.has("span")) chips.push(this.chip(`span ${params.get("span")}`, "only samples of this span", { span: null }));
    if (params.has("text")) chips.push(this.chip(`“${params.get("text")}”`, "only objects with this text", { text: null }));
    if (params.has("group")) chips.push(this.chip(`by ${params.get("group")}`, "put together by this key", { group: null }));
    if (params.has("variables")) chips.push(this.chip("variables apart", "types are told apart by variable", { variables: null }));
    this.chips.replaceChildren(...chips);
    this.chips.hidden = !chips.length;
  }

  // A condition on an object by the object's name, any other as it is.
  conditionText(condition) {
    const match = /^object(?:\.startsWith\(| == )"((?:[^"\\]|\\.)*)"\)?$/s.exec(condition);
    return match ? this.app.nameOf(match[1].replace(/\\(["\\])/g, "$1")) : condition;
  }

  chip(text, title, changes) {
    const { app } = this;
    const shown = visible(text, 120);
    return h("li", { title: visible(title) }, h("span", null, shown),
      button("×", () => app.go(app.link(app.route.view, changes)), { "aria-label": `remove the filter ${shown}` }));
  }

  drawWindows() {
    const { app } = this;
    const windows = app.windows();
    const now = app.window();
    const shape = `${windows.join()} ${now} ${app.route.params.has("span")}`;
    if (shape === this.windowShape) return;
    this.windowShape = shape;
    const hasFocus = this.windowBox.contains(document.activeElement);
    this.windowBox.replaceChildren(h("span", { "aria-hidden": "true" }, "Window "), ...windows.map((window) =>
      button(window, () => this.setWindow(window), { "aria-pressed": String(window === now), disabled: app.route.params.has("span"), title: "window (w, 1 to 5)" })));
    if (hasFocus) this.windowBox.querySelector("[aria-pressed=true]")?.focus();
  }

  drawConnection() {
    const { app } = this;
    const { state, message, pause, session } = app.connection;
    const texts = {
      connecting: "connecting …", live: "live", file: "from a file", refused: "the server wants a token",
      lost: `connection lost: ${message}; next try in ${((pause ?? 0) / 1000).toFixed(1)} s`,
      ended: `${session?.state ?? "ended"}${session?.detail ? `: ${session.detail}` : ""}`,
    };
    const text = app.route.session === null ? "" : app.isPaused ? "PAUSED" : texts[state];
    setText(this.connection, visible(text, 200));
    this.connection.className = `connection ${app.isPaused ? "paused" : state}`;
    this.pauseButton.hidden = app.route.session === null || app.source.isFile;
    setText(this.pauseButton, app.isPaused ? "Go on" : "Pause");
    setAttribute(this.pauseButton, "aria-pressed", String(app.isPaused));
  }

  drawSession() {
    const { app } = this;
    const { snapshot } = app;
    setText(this.heading, visible(snapshot.target.description, 200));
    const elapsed = longSpan(snapshot.elapsed_ns);
    const facts = [snapshot.target.running || app.source.isFile ? elapsed : `ended after ${elapsed}`,
      app.route.params.has("span") ? `AT ${app.route.params.get("span")}` : `window ${app.window()}`,
      ...eventTexts(snapshot)];
    const key = JSON.stringify([facts, snapshot.warnings.length]);
    if (key !== this.factsKey) {
      this.factsKey = key;
      const warnings = snapshot.warnings.length
        ? [h("a", { href: app.link("accounts"), class: "warn" }, `⚠ ${snapshot.warnings.length} warning${snapshot.warnings.length > 1 ? "s" : ""}`)] : [];
      const hasFocus = this.facts.contains(document.activeElement);
      this.facts.replaceChildren(...[...facts.map((fact) => h("span", null, visible(fact, 120))), ...warnings].flatMap((part, at) => (at ? [" · ", part] : [part])));
      if (hasFocus) this.facts.querySelector("a")?.focus();
    }
    const link = this.facts.querySelector("a");
    if (link) setAttribute(link, "href", app.link("accounts"));
    setText(this.accounts, accountsText(app));
  }
}

const VIEWS_WITH_WINDOWS = ["objects", "layout", "treemap"];
const VIEWS_WITH_FILTERS = ["objects", "object", "layout", "treemap", "time", "threads", "code", "measurement", "accounts"];

// A browser may refuse to keep anything, above all for a file.
function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function remember(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // It holds as long as the page is open.
  }
}

function eventTexts(snapshot) {
  if (!snapshot.events.length) return ["no event yet"];
  return snapshot.events.map((event, at) => {
    const now = snapshot.governance?.events[at] ?? {};
    const period = now.period ?? event.period;
    const rate = period ? `period ${period}` : `${now.frequency_hz ?? event.frequency_hz ?? "?"} Hz`;
    return `${event.name} (${rate}${now.is_off ? ", off for the moment" : ""})`;
  });
}

// `N samples = named a% + unknown b% + waiting c% + no memory d% + lost e · 0.65 CPU`, all of one window.
function accountsText(app) {
  const { snapshot } = app;
  const window = app.window();
  const seconds = windowSeconds(window);
  const accounts = app.trend.accounting(snapshot, Number.isFinite(seconds) ? seconds : 0);
  const whole = accounts.kernel;
  const waiting = accounts.unknown.pending ?? 0;
  const part = (count) => percent(count, whole) || "0%";
  const lost = sumOf(accounts.lost);
  let text = `${whole} samples = named ${part(accounts.attributed)} + unknown ${part(sumOf(accounts.unknown) - waiting)}`;
  if (waiting) text += ` + waiting ${part(waiting)}`;
  text += ` + no memory ${part(accounts.not_memory)} + lost ${lost ? part(lost) : "0"}`;
  const clock = clockOf(snapshot);
  const total = snapshot.objects[0]?.metrics;
  if (clock && total) {
    const time = timeOf(total[window] ?? total.all, clock);
    text += ` · ${ratio(time / 1e9, Math.min(seconds, snapshot.elapsed_ns / 1e9)).toFixed(2)} CPU`;
  }
  return text;
}
