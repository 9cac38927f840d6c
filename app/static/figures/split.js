// The blocks as one bar: live, cached and free, empty; before this action and now. What is live newly has the accent.

import { box, Line } from "./paths.js";
import { pixelLayout } from "./plot.js";
import { texture } from "./texture.js";
import { stroke } from "./cells.js";
import { theme } from "./theme.js";
import { Words } from "./words.js";

const LEFT = 31;
const ROW = 16;
const BAR = 9;
const GAP = 2;

export function splitFigure({ blocks }, width) {
  const t = theme();
  const words = new Words();
  const lines = Object.fromEntries(["live", "gained", "cached", "dots", "empty"].map((name) => [name, new Line()]));
  const gained = Math.max(0, blocks.live - blocks.was.live);
  [["was", blocks.was, 0], ["now", blocks, gained]].forEach(([name, counts, fresh], i) => {
    const y = 2 + i * ROW;
    words.add(0, y + BAR / 2, [[name, false]], { tone: "ink3", size: 11.5 });
    bar(lines, counts, fresh, { y, width: width - LEFT - 1 });
  });
  const shapes = [
    stroke("live", lines.live, { width: 0, fill: t.ink2 }),
    stroke("gained", lines.gained, { width: 0, fill: t.accent }),
    stroke("cached", lines.cached, { color: t.ink3, fill: t.surface, dash: "3px,2px" }),
    stroke("dots", lines.dots, { color: t.ink3, width: 1.1 }),
    stroke("empty", lines.empty, { color: t.line2, fill: t.surface }),
  ];
  const height = 2 * ROW + 2;
  return { traces: [], layout: pixelLayout(width, height, shapes), height, words: words.list };
}

/** Widths are shares of the pool; what is not there takes no room. */
function bar(lines, { live, cached, empty }, fresh, { y, width }) {
  const total = Math.max(1, live + cached + empty);
  const parts = [["live", live - fresh], ["gained", fresh], ["cached", cached], ["empty", empty]].filter(([, count]) => count > 0);
  const room = width - GAP * (parts.length - 1);
  let x = LEFT;
  for (const [name, count] of parts) {
    const w = Math.max(1.5, (room * count) / total);
    lines[name].rectangle(x, y, w, BAR, Math.min(1.5, w / 3));
    if (name === "cached") texture(lines.dots, box(x, y, w, BAR), ".", 4);
    x += w + GAP;
  }
}
