// A pool of so many blocks that a cell is a pixel or two: hue and state only, changed blocks as dots in the accent.
//
// Neighbours that look alike are one rectangle. Where blocks lie so mixed that this doesn't help, one discrete heatmap.

import { stroke } from "./cells.js";
import { Line } from "./paths.js";
import { mix, theme } from "./theme.js";

const MOST_RUNS = 4000;
const DOT = 3; // px, at least
const NAMES = ["outside", "empty", "cached", "changed"];
const [EMPTY, CACHED, CHANGED, HUES] = [1, 2, 3, 4]; // hues follow, 8 veiled and 8 pointed at; 0 is no block
const VALUES = HUES + 16;

/** { traces, shapes } of every block but the null block. */
export function pixelCells(pool, grid, spot) {
  const lines = Array.from({ length: VALUES }, () => new Line());
  const runs = fillRuns(lines, pool, grid, spot);
  const mixed = runs > MOST_RUNS;
  const colours = colourOf();
  const shapes = lines.map((line, value) => stroke(NAMES[value] ?? `hue ${value - HUES + 1}`, mixed ? new Line() : line, { width: 0, fill: colours[value] }));
  shapes.push(shapes.splice(CHANGED, 1)[0]); // over all others
  return { traces: mixed ? [heatmap(pool, grid, spot, colours)] : [], shapes };
}

function fillRuns(lines, pool, { pitch, wide, columns, rows, apart, size }, spot) {
  let runs = 0;
  for (let row = 0; row < rows && runs <= MOST_RUNS; row += 1) {
    const first = row * columns + 1;
    const end = Math.min(first + columns, size);
    const y = 1.5 + row * pitch;
    for (let block = first, from = first; block < end; block += 1) {
      const now = value(pool, block, spot);
      if (block + 1 < end && value(pool, block + 1, spot) === now) continue;
      const x = apart + (from - first) * wide;
      const w = (block + 1 - from) * wide;
      if (now === CHANGED) dot(lines[now], { x, y, w, h: pitch });
      else lines[now].rectangle(x, y, w, pitch, 0);
      from = block + 1;
      runs += 1;
    }
  }
  return runs;
}

function dot(line, { x, y, w, h }) {
  const [wide, high] = [Math.max(w, DOT), Math.max(h, DOT)];
  line.rectangle(x + (w - wide) / 2, y + (h - high) / 2, wide, high, 0);
}

function value(pool, block, spot) {
  const flags = pool.flags[block];
  if (flags & 2) return CHANGED;
  if (pool.refs[block] === 0) return flags & 1 ? CACHED : EMPTY;
  const hue = Math.max(0, pool.owners[2 * block]) % 8;
  return HUES + hue + (spot?.has(block) ? 8 : 0);
}

function colourOf() {
  const t = theme();
  const alpha = t.dark ? 0.16 : 0.34;
  return [
    "rgba(0,0,0,0)", t.line, t.ink3, t.accent,
    ...t.hues.map((hue) => mix(hue.fill, t.page, alpha)), ...t.hues.map((hue) => hue.line),
  ];
}

function heatmap(pool, { pitch, wide, columns, rows, apart, size }, spot, colours) {
  const z = Array.from({ length: rows }, () => new Uint8Array(columns));
  for (let block = 1; block < size; block += 1) {
    const place = block - 1;
    z[(place / columns) | 0][place % columns] = value(pool, block, spot);
  }
  return {
    type: "heatmap", name: "blocks", hoverinfo: "skip", showscale: false, z, x0: apart + wide / 2, dx: wide, y0: 1.5 + pitch / 2, dy: pitch,
    zmin: -0.5, zmax: VALUES - 0.5, colorscale: colours.flatMap((colour, i) => [[i / VALUES, colour], [(i + 1) / VALUES, colour]]),
  };
}
