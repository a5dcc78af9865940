// Addresses: every view and every filter is a link, `#/SESSION/VIEW?param=…`.

// Parameters that hold in every view; the others belong to one.
const HELD = ["window", "where", "span", "group", "variables", "names", "text", "list", "columns", "sort", "up"];

// The place that the address names; without a session it is the list of them.
export function parseRoute(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const params = new URLSearchParams(search);
  if (parts.length < 2) return { session: null, view: parts[0] ?? "", params };
  return { session: parts[0], view: parts[1], params };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The address of a view. `changes` sets parameters, null takes one away; a list sets it several times.
export function linkTo(route, view, changes = {}) {
  const params = new URLSearchParams();
  const isSame = view === route.view;
  for (const [name, value] of route.params) {
    if (!(name in changes) && (isSame || HELD.includes(name))) params.append(name, value);
  }
  for (const [name, value] of Object.entries(changes)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") params.append(name, one);
    }
  }
  const search = params.toString();
  const session = route.session === null ? "" : `${encodeURIComponent(route.session)}/`;
  return `#/${session}${view}${search ? `?${search}` : ""}`;
}

// The condition of all filters of an address, or undefined.
export function whereOf(route, other) {
  const all = [...route.params.getAll("where"), ...(other ? [other] : [])];
  return all.length > 1 ? all.map((one) => `(${one})`).join(" && ") : all[0];
}

// A question about the samples that the address leaves.
export function narrowed(route, question) {
  return { ...question, where: whereOf(route, question.where), span: route.params.get("span") ?? undefined };
}

// Tells whether the history has to be asked, because not all samples count or they are put together otherwise.
export function isNarrow(route) {
  return ["where", "span", "group", "variables"].some((name) => route.params.has(name));
}
