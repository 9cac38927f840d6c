// Time on a comparison: the line with both branches' signs, and a lane an aspect, filled where the two differ.

import { stroke } from "../figures/cells.js";
import { Line } from "../figures/paths.js";
import { pixelLayout } from "../figures/plot.js";
import { theme } from "../figures/theme.js";

export const INSET = 8; // px, half of the thumb
export const LANE = 15; // px, as the rows of the numbers beside it
const MIDDLE = 28;
const OFF = 15;
const NEAR = 9;

/** Where a moment stands. All pictures over time have the same width. */
export function axis(width, end) {
  const step = (width - 2 * INSET) / Math.max(1, end);
  return { x: (k) => INSET + k * step, step, end };
}

function lines(names) {
  return Object.fromEntries(names.map((name) => [name, new Line()]));
}

export function timeFigure({ at, end, signs, ends, adds }, width, height) {
  const t = theme();
  const { x, step } = axis(width, end);
  const drawn = lines(["past", "future", "tails", "adds", "filled", "hollow", "needle", "ends"]);
  drawn.past.line([[x(0), MIDDLE], [x(at), MIDDLE]]);
  drawn.future.line([[x(at), MIDDLE], [x(end), MIDDLE]]);
  if (step > 6) {
    for (let k = 1; k <= end; k += 1) drawn[k <= at ? "past" : "future"].line([[x(k), MIDDLE - 4], [x(k), MIDDLE + 4]]);
  }
  for (const k of adds) drawn.adds.circle(x(k), MIDDLE, 4.5);
  signs.forEach((side, i) => signsOf(drawn, side, x, MIDDLE + (i ? OFF : -OFF)));
  ends.forEach((one, i) => {
    const y = MIDDLE + (i ? OFF : -OFF);
    if (one < end) drawn.ends.line([[x(one) + 8, y - 5], [x(one) + 8, y + 5]]);
  });
  drawn.needle.line([[x(at), MIDDLE], [x(at), height]]);
  const shapes = [
    stroke("future", drawn.future, { color: t.line2, width: 2 }),
    stroke("past", drawn.past, { color: t.ink2, width: 2 }),
    stroke("adds", drawn.adds, { color: t.ink2, width: 1.7, fill: t.page }),
    stroke("tails", drawn.tails, { color: t.ink3, width: 1.2, dash: "1.5px,3px" }),
    stroke("filled", drawn.filled, { width: 0, fill: t.ink2 }),
    stroke("hollow", drawn.hollow, { color: t.ink2, width: 1.6 }),
    stroke("ends", drawn.ends, { color: t.ink3, width: 1.6 }),
    stroke("needle", drawn.needle, { color: t.accent }),
  ];
  return { traces: [], layout: pixelLayout(width, height, shapes), height };
}

/** One side's signs; what happens action by action is one sign with a tail. Too near to the one before: left out. */
function signsOf(drawn, signs, x, y) {
  let last = -Infinity;
  for (const [what, , first, until] of signs) {
    const at = x(first);
    if (until > first + 1) drawn.tails.line([[at + 7, y], [x(until) + 2, y]]);
    if (at - last < NEAR && what !== "preempted") continue;
    last = at;
    if (what === "finished") drawn.filled.rectangle(at - 3.5, y - 3.5, 7, 7, 0);
    else if (what === "preempted") drawn.filled.polygon([[at - 4.5, y - 3.5], [at + 4.5, y - 3.5], [at, y + 4]]);
    else if (what === "evicted") drawn.hollow.polygon([[at - 3, y - 3.5], [at + 3.5, y - 3.5], [at + 3.5, y + 3]]);
    else {
      drawn.hollow.circle(at, y, 4.2);
      drawn.hollow.line([[at - 2, y], [at + 2, y]]);
    }
  }
}

/** Past lanes are filled, the future is an outline; the moment itself is in the accent. */
export function lanesFigure({ at, end, lanes }, width, names) {
  const t = theme();
  const { x, step } = axis(width, end);
  const drawn = lines(["rules", "past", "future", "now", "needle"]);
  const half = step / 2;
  names.forEach((name, i) => {
    const y = i * LANE + 2;
    const h = LANE - 5;
    drawn.rules.line([[x(0) - half, y + h + 0.5], [x(end) + half, y + h + 0.5]]);
    for (const [first, last] of lanes[name]) {
      const bar = (line, from, to, gap) => line.rectangle(x(from) - half + gap, y + gap / 2, Math.max((to - from + 1) * step - 2 * gap, 1), h - gap, 0);
      if (first < at) bar(drawn.past, first, Math.min(last, at - 1), 0.3);
      if (last > at) bar(drawn.future, Math.max(first, at + 1), last, 1);
      if (first <= at && at <= last) drawn.now.rectangle(x(at) - Math.max(half, 2.5), y, Math.max(step, 5), h, 0);
    }
  });
  const height = names.length * LANE;
  drawn.needle.line([[x(at), 0], [x(at), height]]);
  const shapes = [
    stroke("rules", drawn.rules, { color: t.line }),
    stroke("future", drawn.future, { color: t.ink3, fill: t.sunk }),
    stroke("past", drawn.past, { width: 0, fill: t.ink2 }),
    stroke("needle", drawn.needle, { color: t.accent }),
    stroke("now", drawn.now, { width: 0, fill: t.accent }),
  ];
  return { traces: [], layout: pixelLayout(width, height, shapes), height };
}
