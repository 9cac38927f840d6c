// The block pool: one cell a block. From 14 px up it has texture, edges and corners; below it is hue and state only.

import { Cells } from "./cells.js";
import { pixelLayout } from "./plot.js";
import { mix, theme } from "./theme.js";

const PITCHES = [28, 20, 14, 9, 8, 6, 5, 4, 2, 1];
const MAX_IDS = 400;
const NULL_GAP = 9;

// The values of the heatmap; hues follow, 8 veiled and 8 at full strength.
const [NONE, EMPTY, CACHED, CHANGED_DOT, NULL, HUES] = [0, 1, 2, 3, 4, 5];
const VALUES = HUES + 16;

/** The largest pitch at which all blocks fit; columns are a multiple of 10. */
export function poolGrid(size, width, maxHeight) {
  const count = Math.max(1, size - 1);
  for (const pitch of PITCHES) {
    const apart = pitch >= 14 ? pitch + NULL_GAP : Math.max(9, pitch + 3);
    const columns = Math.max(10, Math.floor((width - apart) / pitch / 10) * 10);
    const rows = Math.ceil(count / columns);
    if (rows * pitch > maxHeight && pitch > 1) continue;
    // Large cells stretch to fill the width; small ones stay square.
    const wide = pitch >= 14 ? Math.min(pitch * 1.5, (width - apart) / columns) : pitch;
    return { pitch, wide, apart, columns, rows, gap: gapOf(pitch), height: Math.max(rows, 1) * pitch + 3, size };
  }
}

function gapOf(pitch) {
  if (pitch >= 14) return 3;
  if (pitch >= 8) return 2;
  return pitch >= 4 ? 1 : 0;
}

/** Where a block's cell stands. */
export function cellBox(grid, block) {
  const { pitch, wide, apart, columns, gap } = grid;
  const w = wide - gap;
  const h = pitch - gap;
  if (block === 0) return { x: 1.5, y: 1.5, w: Math.max(h, Math.min(w, apart - NULL_GAP)), h: Math.max(h, 3) };
  const place = block - 1;
  return { x: apart + (place % columns) * wide + gap / 2, y: 1.5 + Math.floor(place / columns) * pitch, w, h };
}

/** The block at a point, or null. */
export function blockAt(grid, x, y) {
  if (x < grid.apart) return y < Math.max(grid.pitch, 6) + 2 && x < grid.apart - 2 ? 0 : null;
  const column = Math.floor((x - grid.apart) / grid.wide);
  const row = Math.floor((y - 1.5) / grid.pitch);
  if (column >= grid.columns || row < 0) return null;
  const block = row * grid.columns + column + 1;
  return block < grid.size ? block : null;
}

export function poolFigure(model, grid) {
  const detailed = grid.pitch >= 14;
  const cells = new Cells({ ids: grid.pitch >= 20 && grid.size <= MAX_IDS + 1, radius: detailed ? 1.2 : 0, ring: grid.gap / 2 });
  if (detailed) {
    for (let block = 0; block < grid.size; block += 1) cells.add(poolCell(model.pool, grid, block));
  } else {
    cells.add({ ...cellBox(grid, 0), kind: "null" });
    if (grid.gap > 0) for (const block of model.pool.changed) cells.add({ ...cellBox(grid, block), kind: "ring", changed: true });
  }
  return {
    traces: [fills(model.pool, grid, detailed), ...cells.traces()],
    layout: pixelLayout(Math.ceil(grid.apart + grid.columns * grid.wide) + 2, grid.height, cells.shapes()),
  };
}

function poolCell(pool, grid, block) {
  const changed = pool.isChanged(block);
  return {
    ...cellBox(grid, block), block, kind: pool.kind(block), hues: pool.hues(block), hashed: pool.isHashed(block),
    changed, quiet: !changed, lost: pool.lostHash(block),
  };
}

/** One discrete heatmap: the fill of every block. */
function fills(pool, grid, detailed) {
  const { pitch, wide, columns, rows, apart, gap } = grid;
  const z = Array.from({ length: rows }, () => new Array(columns).fill(NONE));
  const dots = gap === 0;
  for (let block = 1; block < grid.size; block += 1) {
    const place = block - 1;
    // A shared block is two triangles: the page shows in the seam between.
    z[(place / columns) | 0][place % columns] = detailed && pool.refs[block] > 1 ? NONE : value(pool, block, dots);
  }
  return {
    type: "heatmap", name: "blocks", hoverinfo: "skip", showscale: false, z, x0: apart + wide / 2, dx: wide, y0: 1.5 + (pitch - gap) / 2, dy: pitch,
    xgap: gap + (detailed ? 1 : 0), ygap: gap + (detailed ? 1 : 0), zmin: -0.5, zmax: VALUES - 0.5, colorscale: scale(detailed),
  };
}

function value(pool, block, dots) {
  const flags = pool.flags[block];
  if (dots && flags & 2) return CHANGED_DOT;
  if (pool.refs[block] === 0) return flags & 1 ? CACHED : EMPTY;
  const hue = Math.max(0, pool.owners[2 * block]) % 8;
  return HUES + hue + (flags & 2 ? 8 : 0);
}

function scale(detailed) {
  const t = theme();
  const alpha = t.dark ? 0.16 : 0.34;
  const colours = [
    "rgba(0,0,0,0)", detailed ? t.surface : t.line, detailed ? t.surface : t.ink3, t.accent, t.sunk,
    ...t.hues.map((hue) => mix(hue.fill, t.page, alpha)), ...t.hues.map((hue) => hue.fill),
  ];
  return colours.flatMap((colour, i) => [[i / VALUES, colour], [(i + 1) / VALUES, colour]]);
}
