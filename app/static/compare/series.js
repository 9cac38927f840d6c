// Both branches over time in one plot: A a solid line, B a dashed one; the space between them is filled where they differ.

import { stroke } from "../figures/cells.js";
import { Line } from "../figures/paths.js";
import { pixelLayout } from "../figures/plot.js";
import { valueAt } from "../figures/series.js";
import { theme } from "../figures/theme.js";
import { axis } from "./time.js";

/** How high each line is, and where it begins: as the rows of the numbers beside it. */
export const ROWS = [
  { name: "usage", top: 8, high: 44, row: 60, most: 1 },
  { name: "running", top: 4, high: 22, row: 34 },
  { name: "waiting", top: 4, high: 22, row: 34 },
];
const NAMES = ["rules", "apart", "apartLater", "a", "b", "aLater", "bLater", "needle", "dotA", "dotB"];

export function bothFigure({ at, end, ends, series }, width) {
  const t = theme();
  const { x, step } = axis(width, end);
  const drawn = Object.fromEntries(NAMES.map((name) => [name, new Line()]));
  let top = 0;
  for (const { name, top: gap, high, row, most } of ROWS) {
    const both = series.map((side) => side[name]);
    const largest = most ?? Math.max(1, ...both.flatMap(([, values]) => values));
    const y = (value) => top + gap + high * (1 - value / largest);
    drawn.rules.line([[x(0), y(0) + 1.5], [x(end), y(0) + 1.5]]);
    apart(drawn, both, { x, y, at, end: Math.min(...ends) });
    both.forEach((points, i) => path(drawn[i ? "b" : "a"], drawn[i ? "bLater" : "aLater"], points, { x, y, at, end: ends[i] }));
    both.forEach((points, i) => drawn[i ? "dotB" : "dotA"].circle(x(at), y(valueAt(points, Math.min(at, ends[i]))), 3.2));
    top += row;
  }
  drawn.needle.line([[x(at), 0], [x(at), top]]);
  const shapes = [
    stroke("rules", drawn.rules, { color: t.line }),
    stroke("apart", drawn.apart, { width: 0, fill: t.accentfill }),
    stroke("apart later", drawn.apartLater, { width: 0, fill: t.sunk }),
    stroke("b later", drawn.bLater, { color: t.line2, width: 1.5, dash: "5px,3px" }),
    stroke("a later", drawn.aLater, { color: t.line2, width: 1.5 }),
    stroke("b", drawn.b, { color: t.ink, width: 1.6, dash: "5px,3px" }),
    stroke("a", drawn.a, { color: t.ink, width: 1.6 }),
    stroke("needle", drawn.needle, { color: t.accent }),
    stroke("now a", drawn.dotA, { color: t.accent, width: 1.6, fill: t.accent }),
    stroke("now b", drawn.dotB, { color: t.accent, width: 1.6, fill: t.page }),
  ];
  return { traces: [], layout: pixelLayout(width, top, shapes), height: top, step };
}

/** A line of steps, cut at this moment. */
function path(past, later, [moments, values], { x, y, at, end }) {
  const before = [];
  const behind = [];
  moments.forEach((k, i) => {
    if (k > end) return;
    const until = Math.min(moments[i + 1] ?? end, end);
    if (k <= at) before.push([x(k), y(values[i])], [x(Math.min(until, at)), y(values[i])]);
    if (until > at) behind.push([x(Math.max(k, at)), y(values[i])], [x(until), y(values[i])]);
  });
  if (before.length) past.line(before);
  if (behind.length) later.line(behind);
}

/** The space between the lines. */
function apart(drawn, [a, b], { x, y, at, end }) {
  const moments = [...new Set([...a[0], ...b[0], at, end])].filter((k) => k <= end).sort((m, n) => m - n);
  moments.forEach((k, i) => {
    const until = moments[i + 1] ?? end;
    const [mine, theirs] = [valueAt(a, k), valueAt(b, k)];
    if (until <= k || mine === theirs) return;
    const high = Math.max(mine, theirs);
    drawn[k < at ? "apart" : "apartLater"].rectangle(x(k), y(high), x(until) - x(k), y(Math.min(mine, theirs)) - y(high), 0);
  });
}
