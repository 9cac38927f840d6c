// kv_cache_usage_perc as a gauge: what the step gained is its last piece, the watermark a mark across it.
//
// Shapes like the others: Plotly's indicator lays out the whole page each time it changes, a fifth of a step.

import { stroke } from "./cells.js";
import { Line } from "./paths.js";
import { pixelLayout } from "./plot.js";
import { theme } from "./theme.js";
import { Words } from "./words.js";

const THICK = 0.26; // of the radius
const FEW = 24; // points of a whole arc

export function gaugeFigure({ usage }, width, height) {
  const t = theme();
  const { now, watermark_at: watermark } = usage;
  const was = usage.was ?? now;
  const low = Math.min(now, was);
  const arc = { x: width / 2, y: height - 14, r: Math.min(width / 2 - 16, height - 30) };
  const lines = Object.fromEntries(["track", "live", "gained", "watermark"].map((name) => [name, new Line()]));
  piece(lines.track, arc, Math.max(now, 0), 1);
  piece(lines.live, arc, 0, low);
  piece(lines.gained, arc, low, now);
  if (watermark !== null && watermark !== undefined) {
    lines.watermark.line([at(arc, watermark, 1 - THICK - 0.03), at(arc, watermark, 1.08)]);
  }
  const shapes = [
    stroke("track", lines.track, { width: 0, fill: t.line }),
    stroke("live", lines.live, { width: 0, fill: t.ink2 }),
    stroke("gained", lines.gained, { width: 0, fill: t.accent }),
    stroke("watermark", lines.watermark, { color: t.ink, width: 2 }),
  ];
  return { traces: [], layout: pixelLayout(width, height, shapes), height, words: words(arc, now) };
}

function words(arc, now) {
  const texts = new Words();
  texts.add(arc.x, arc.y - 9, [[now.toFixed(2), true]], { tone: "ink", anchor: "middle", size: 23, mono: true });
  const middle = 1 - THICK / 2;
  for (const value of [0, 1]) texts.add(at(arc, value, middle)[0], arc.y + 8, [[String(value), false]], { tone: "ink3", anchor: "middle", size: 11 });
  texts.add(arc.x, arc.y - arc.r - 9, [["0.5", false]], { tone: "ink3", anchor: "middle", size: 11 });
  return texts.list;
}

/** The point of a value on the half circle, at a share of its radius. */
function at({ x, y, r }, value, share) {
  const angle = Math.PI * (1 - Math.min(1, Math.max(0, value)));
  return [x + share * r * Math.cos(angle), y - share * r * Math.sin(angle)];
}

function piece(line, arc, from, to) {
  if (to <= from) return;
  const count = Math.max(2, Math.ceil((to - from) * FEW) + 1);
  const values = Array.from({ length: count }, (_, i) => from + ((to - from) * i) / (count - 1));
  line.polygon([...values.map((value) => at(arc, value, 1)), ...values.reverse().map((value) => at(arc, value, 1 - THICK))]);
}
