// Help: the keys, the columns, and the words of the header.

import { h } from "./dom.js";
import { COLUMNS } from "./column.js";

const KEYS = [
  ["?", "this page"], ["Enter", "all about the object under the cursor"], ["q, Esc", "back to the objects; Esc there takes filters off"],
  ["l", "layout of the object's type in its cache lines"], ["x", "treemap of memory time"], ["c", "code that touches it"], ["t", "cache lines that threads share"],
  ["h", "samples by second; a span drawn there holds everywhere"], ["m", "measurement: exact counts and sums"], ["!", "warnings, cost and accounts"], ["d", "sessions of the daemon"],
  ["/", "filter: text of a name; after = an expression over samples"], ["f", "only samples of what is under the cursor, in every view"], ["F", "take the last filter off"],
  ["g", "group by a key, or by any expression"], ["v", "tell a type's variables apart"], ["w, 1 to 5", "next window, or the one of that number"], ["0", "back to now"],
  ["s, S", "sort by the next or the previous column"], ["i", "sort the other way round"], ["o", "choose the columns"], ["y", "members below their aggregate, or one list"],
  ["n", "names of the source, or descriptors by type"], ["+ or →", "show the members below a row"], ["- or ←", "hide them, or go to the row around"],
  ["*", "show the members of all rows, or of none"], ["p, Space", "stop the picture, not the sampling; again to go on"],
  ["↑ ↓ j k, PgUp, PgDn, Home, End, G", "move in the table"], ["← →, with Shift", "in the picture of seconds: move, and draw a span"],
];
const WORDS = [
  ["named", "samples that have a data object"], ["unknown", "samples without one; the reasons are in Cost and accounts"], ["waiting", "their debug information is still being read"],
  ["no memory", "their instruction touches no memory"], ["lost", "the kernel or the profiler had no room for them"],
  ["window", "the last seconds that the sums are of; “all” is since the session began"],
];

export function helpView(app) {
  const box = h("input", { type: "checkbox", id: "keys-on", checked: app.shell.hasKeys(), change: () => app.shell.setKeys(box.checked) });
  const list = (rows, isKeys) => h("dl", null, rows.map(([name, text]) => h("div", null, h("dt", null, isKeys ? h("kbd", null, name) : name), h("dd", null, text))));
  const element = h("div", { class: "help" },
    h("p", null, box, " ", h("label", { for: "keys-on" }, "Single keys are shortcuts (never while a field is typed into)")),
    h("h3", null, "Keys"), list(KEYS, true), h("h3", null, "Columns"), list(COLUMNS.map((column) => [column.title, column.meaning])),
    h("h3", null, "Words of the header"), list(WORDS));
  return { title: "Help", element, update() {} };
}
