// The block pool: one cell a block. From 14 px up it has texture and corners; below 4 px see pixels.js.

import { Cells } from "./cells.js";
import { pixelCells } from "./pixels.js";
import { pixelLayout } from "./plot.js";

export const PITCHES = [72, 56, 40, 28, 20, 14, 9, 8, 6, 5, 4, 2, 1];
const USUAL = PITCHES.indexOf(28); // the larger ones are for an enlarged pool
const MAX_IDS = 400;
const NULL_GAP = 9;

/** The largest pitch at which all blocks fit, or the one asked for; columns are a multiple of 10. */
export function poolGrid(size, width, maxHeight, { asked = null, enlarged = false } = {}) {
  const count = Math.max(1, size - 1);
  const wanted = enlarged ? PITCHES.filter((pitch) => pitch <= Math.max(28, width / 10.5)) : PITCHES.slice(USUAL);
  for (const pitch of asked ? [asked] : wanted) {
    const apart = pitch >= 14 ? pitch + NULL_GAP : Math.max(9, pitch + 3);
    const columns = Math.max(10, Math.floor((width - apart) / pitch / 10) * 10);
    const rows = Math.ceil(count / columns);
    if (rows * pitch > maxHeight && pitch > 1 && !asked) continue;
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

export function poolFigure(model, grid, { spot = null, clip = null, most = MAX_IDS + 60 }) {
  const plain = grid.pitch < 14;
  const pixels = grid.gap === 0;
  const [from, to] = pixels ? [1, 1] : inSight(grid, clip);
  const cells = new Cells({ ids: grid.pitch >= 20 && to - from <= most, plain, radius: plain ? 0 : 1.2, ring: plain ? 1 : 1.5, clip, spot });
  cells.add({ ...cellBox(grid, 0), kind: "null", block: 0 });
  for (let block = from; block < to; block += 1) cells.add(poolCell(model.pool, grid, block));
  const { traces, shapes } = pixels ? pixelCells(model.pool, grid, spot) : { traces: [], shapes: [] };
  const width = Math.ceil(grid.apart + grid.columns * grid.wide) + 2;
  return { traces, layout: pixelLayout(width, grid.height, [...cells.shapes(), ...shapes]), height: grid.height, words: cells.words.list };
}

/** The first block in sight and the one behind the last. */
function inSight({ pitch, columns, size }, clip) {
  if (!clip) return [1, size];
  const row = (y) => Math.max(0, Math.floor(y / pitch));
  return [row(clip[0]) * columns + 1, Math.min(size, (row(clip[1]) + 1) * columns + 1)];
}

function poolCell(pool, grid, block) {
  const changed = pool.isChanged(block);
  return {
    ...cellBox(grid, block), block, kind: pool.kind(block), hues: pool.hues(block), hashed: pool.isHashed(block),
    changed, quiet: !changed, lost: pool.lostHash(block),
  };
}
