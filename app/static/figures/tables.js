// The block tables: a row a request, a cell a block, with how full it is. Many requests fold to one line each.

import { Cells, idWidth } from "./cells.js";
import { fitText } from "./plot.js";

const ROW = 22;
const CAPTION = 8;
const CELL = 20;
const LABEL = 82;

export function tablesFigure(model, width, { room, clip, spot }) {
  const tables = model.tables ?? [];
  const least = idWidth(model.pool.size) + 2;
  const columns = Math.max(7, Math.min(24, Math.floor((width - LABEL) / least)));
  const pitch = Math.min(least + 4, (width - LABEL - 2) / columns);
  const tall = tables.reduce((sum, table) => sum + heightOf(table, columns), 0);
  // One or two scroll rather than fold: a picture that folds while time goes on would jump.
  const folded = tall > room && tables.length > 2;
  const cells = new Cells({ clip, spot });
  let y = 3.5;
  for (const table of tables) y += row(cells, table, model, { y, columns, pitch, folded });
  if (!tables.length) cells.note(0, 12, "No request holds a block.", { tone: "ink2" });
  return cells.figure(width, Math.max(y, 40));
}

function heightOf(table, columns) {
  return Math.max(Math.ceil(slots(table) / columns) * ROW + CAPTION, 36);
}

function slots(table) {
  const listed = table.cells.length;
  return listed < table.total ? listed + 3 : Math.max(1, listed);
}

function row(cells, table, model, { y, columns, pitch, folded }) {
  const number = table.request;
  label(cells, table, number % 8, y, folded);
  const items = chosenCells(table, folded ? columns : Infinity);
  let place = 0;
  let end = { x: LABEL, y };
  for (const item of items) {
    const span = item.more ? 3 : 1;
    if ((place % columns) + span > columns) place += columns - (place % columns);
    const box = { x: LABEL + (place % columns) * pitch, y: y + Math.floor(place / columns) * ROW, w: span * pitch - 3, h: CELL };
    if (item.more) cells.fold(box, `${item.more} more`);
    else cells.add({ ...box, ...tableCell(item, table, model) });
    place += span;
    end = { x: box.x + box.w + 8, y: box.y };
  }
  const words = partWords(table);
  if (words && columns * pitch + LABEL - end.x > words.length * 6) cells.note(end.x, end.y + CELL / 2, words);
  const rows = Math.max(1, Math.ceil(place / columns));
  return folded ? ROW + 5 : Math.max(rows * ROW + CAPTION, 36);
}

/** All of it, or the first and last ones with the number of the others between. */
function chosenCells(table, room) {
  const { cells, total } = table;
  if (cells.length === total && total <= room) return cells;
  const listed = Math.min(room === Infinity ? cells.length : room - 3, cells.length);
  const head = cells.slice(0, Math.ceil(listed / 2));
  const tail = cells.slice(cells.length - (listed - head.length));
  const more = total - head.length - tail.length;
  return more > 0 ? [...head, { more }, ...tail] : [...head, ...tail];
}

function label(cells, table, hue, y, folded) {
  const group = table.group ? ` ·${table.group}` : "";
  const name = fitText(table.id, LABEL - 21 - group.length * 6, { size: 12.5, bold: true });
  cells.swatch(1.5, y + 4, hue);
  cells.note(17, y + 10, [[name, true], [group, false]], { tone: "ink", size: 12.5 });
  const words = table.total === 1 ? "1 block" : `${table.total} blocks`;
  if (!folded) cells.note(17, y + 25, words, { size: 11.5 });
}

function tableCell([, block, kind, filled, changed, hashed], table, { pool }) {
  if (kind === "null") return { block: 0, kind: "null", changed };
  if (kind === "lookahead") return { block, kind: "lookahead", changed };
  const shared = pool.refs[block] > 1;
  return {
    block, kind: "held", hues: shared ? pool.hues(block) : [table.request % 8], part: shared ? 1 : filled / table.block_size,
    changed, hashed, quiet: !changed, underlined: kind === "hit",
  };
}

/** The last block that is not full, in words. */
function partWords(table) {
  const last = table.cells.findLast(([, , kind, filled]) => (kind === "new" || kind === "hit") && filled > 0);
  if (!last || last[3] >= table.block_size) return "";
  return `block ${last[1]} holds ${last[3]} of ${table.block_size} tokens`;
}
