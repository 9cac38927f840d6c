// The run in small lines, one under the other: what was is ink, what comes is grey, the needle stands at this moment.

import { Line } from "./paths.js";
import { pixelLayout } from "./plot.js";
import { stroke } from "./cells.js";
import { theme } from "./theme.js";
import { Words } from "./words.js";

const ROW = 26;
const TEXT = 6;
const TOP = 13; // of a line below its words
const HIGH = 8;
const percent = (value) => `${(100 * value).toFixed(1).replace(/\.0$/, "")} %`;

const ROWS = [
  { names: ["usage"], label: "kv_cache_usage_perc", most: 1, say: ([value]) => value.toFixed(2) },
  { names: ["hit"], label: "hit rate so far", most: 1, say: ([value]) => (value === null ? "no query yet" : percent(value)) },
  { names: ["free"], label: "free blocks", say: ([value]) => String(value) },
  { names: ["running", "waiting"], label: "running, waiting", say: ([running, waiting]) => `${running}, ${waiting}` },
  { names: ["preemptions"], label: "preemptions", say: ([value]) => String(value) },
];

export function seriesFigure({ series, at }, width) {
  const t = theme();
  const words = new Words();
  const lines = Object.fromEntries(["base", "future", "past", "second", "needle", "dots"].map((name) => [name, new Line()]));
  const scale = (width - 4) / Math.max(1, series.end);
  const x = (k) => 1 + k * scale;
  ROWS.forEach(({ names, label, most, say }, i) => {
    const y = 1 + i * ROW;
    const lists = names.map((name) => series[name]);
    const top = most ?? Math.max(1, ...lists.flatMap(([, values]) => values));
    const place = (value) => y + TOP + HIGH * (1 - (value ?? 0) / top);
    lines.base.line([[x(0), y + TOP + HIGH + 1], [x(series.end), y + TOP + HIGH + 1]]);
    lists.forEach((points, j) => steps(j ? lines.second : lines.past, lines.future, points, { x, place, at, end: series.end }));
    const now = lists.map((points) => valueAt(points, at));
    words.add(0, y + TEXT - 1, [[label, false]], { tone: "ink3", size: 10.5 });
    words.add(width - 2, y + TEXT - 1, [[say(now), false]], { tone: "ink", anchor: "end", size: 10.5, mono: true });
    lines.needle.line([[x(at), y + TOP - 3], [x(at), y + TOP + HIGH + 2]]);
    lines.dots.circle(x(at), place(now[0]), 2.2);
  });
  const shapes = [
    stroke("base", lines.base, { color: t.line }),
    stroke("future", lines.future, { color: t.line2, width: 1.3 }),
    stroke("needle", lines.needle, { color: t.accent }),
    stroke("second", lines.second, { color: t.ink3, width: 1.3, dash: "3px,2px" }),
    stroke("past", lines.past, { color: t.ink2, width: 1.6 }),
    stroke("now", lines.dots, { width: 0, fill: t.accent }),
  ];
  const height = ROWS.length * ROW + 1;
  return { traces: [], layout: pixelLayout(width, height, shapes), height, words: words.list };
}

/** A line of steps, cut at this moment. A value that isn't there yet (null) is a gap. */
function steps(past, future, [ks, values], { x, place, at, end }) {
  for (let i = 0; i < ks.length; i += 1) {
    if (values[i] === null) continue;
    const from = ks[i];
    const to = i + 1 < ks.length ? ks[i + 1] : end;
    const jump = i + 1 < ks.length && values[i + 1] !== null ? [[x(to), place(values[i + 1])]] : [];
    const y = place(values[i]);
    if (from <= at) past.line([[x(from), y], [x(Math.min(to, at)), y], ...(to <= at ? jump : [])]);
    if (to > at) future.line([[x(Math.max(from, at)), y], [x(to), y], ...jump]);
  }
}

/** The last value at or before `at`; points hold until the next one. */
export function valueAt([ks, values], at) {
  let low = 0;
  let high = ks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ks[middle] <= at) low = middle;
    else high = middle - 1;
  }
  return values[low] ?? null;
}
