// The scale of heat: six steps of a share, each printed as a number, too.

import { svg } from "./dom.js";

const STEPS = [0, 0.01, 0.05, 0.2, 0.5];

// The step of a share: 0 is none at all, 5 is half and more.
export function heatStep(share) {
  if (!share) return 0;
  const at = STEPS.findIndex((step, place) => place > 0 && share < step);
  return at < 0 ? 5 : at;
}

// The patterns of bytes that nobody has: holes one way, padding the other. The name keeps two pictures apart.
export function hatches(name) {
  const hatch = (kind, path) => svg("pattern", { id: `${name}-${kind}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    svg("path", { d: path, class: "hatch" }));
  return svg("defs", null, hatch("hole", "M-2 2l4-4M0 8l8-8M6 10l4-4"), hatch("padding", "M-2 6l4 4M0 0l8 8M6-2l4 4"));
}

// A text that is cut to so many units, since pictures do not cut by themselves.
export function fitted(text, width, letterWidth = 7) {
  const most = Math.floor(width / letterWidth);
  if (most < 2) return "";
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
