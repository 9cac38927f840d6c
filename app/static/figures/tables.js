// The block tables: a row a request, a cell a block, with how full it is. Many requests fold to one line each.

import { Cells, idWidth } from "./cells.js";
import { fitText } from "./plot.js";

const ROW = 22;
const CAPTION = 8;
const CELL = 20;
const APART = 6; // between what is hit and what is new
const NARROW = 480;
const LABELS = { one: { wide: 82, name: 61 }, wide: { wide: 209, name: 64 }, narrow: { wide: 142, name: 40 } };

export function tablesFigure(model, width, { room, clip, spot }) {
  const tables = model.tables ?? [];
  const shape = shapeOf(model, width);
  const tall = tables.reduce((sum, table, i) => sum + heightOf(table, tables[i + 1], shape), 0);
  // One or two requests scroll rather than fold: a picture that folds while time goes on would jump.
  const folded = tall > room && new Set(tables.map((table) => table.request)).size > 2;
  const cells = new Cells({ clip, spot });
  let y = 3.5;
  tables.forEach((table, i) => {
    const is = { first: tables[i - 1]?.request !== table.request, last: tables[i + 1]?.request !== table.request };
    y += row(cells, table, model, { ...shape, ...is, y, folded });
  });
  if (!tables.length) cells.note(0, 12, "No request holds a block.", { tone: "ink2" });
  return cells.figure(width, Math.max(y, 40));
}

/** With several groups every row names its group, in a column behind the requests' names. */
function shapeOf(model, width) {
  const several = model.groups.length > 1;
  const narrow = width < NARROW;
  const label = !several ? LABELS.one : narrow ? LABELS.narrow : LABELS.wide;
  const least = idWidth(model.pool.size) + 2;
  const columns = Math.max(7, Math.min(24, Math.floor((width - label.wide) / least)));
  const pitch = Math.min(least + 4, (width - label.wide - 2) / columns);
  return { width, several, narrow, label, columns, pitch };
}

function heightOf(table, next, { columns, several }) {
  const rows = Math.ceil(slots(table) / columns) * ROW;
  if (several) return rows + (next?.request === table.request ? 2 : CAPTION);
  return Math.max(rows + CAPTION, 36);
}

function slots(table) {
  const listed = table.cells.length;
  return listed < table.total ? listed + 3 : Math.max(1, listed);
}

function row(cells, table, model, shape) {
  const { y, columns, pitch, folded, several, last } = shape;
  const left = shape.label.wide;
  label(cells, table, model, shape);
  const items = chosenCells(table, folded ? columns : Infinity);
  const joined = !folded && !several && items.length < columns ? joinedNow(items, table) : null;
  let place = 0;
  let end = { x: left, y };
  for (const item of items) {
    const span = item.more ? 3 : 1;
    if ((place % columns) + span > columns) place += columns - (place % columns);
    const apart = joined !== null && joined.hits > 0 && place >= joined.hits ? APART : 0;
    const box = { x: left + (place % columns) * pitch + apart, y: y + Math.floor(place / columns) * ROW, w: span * pitch - 3, h: CELL };
    if (item.more) cells.fold(box, `${item.more} more`);
    else cells.add({ ...box, ...tableCell(item, table, model), apart: apart > 0 && place === joined.hits });
    place += span;
    end = { x: box.x + box.w + 8, y: box.y };
  }
  note(cells, table.note, end, shape.width);
  if (joined) captions(cells, joined, { x: left, y: y + ROW + 6, pitch }, shape.width);
  const rows = Math.max(1, Math.ceil(place / columns)) * ROW;
  if (several) return (folded ? ROW : rows) + (last ? CAPTION : 2);
  return folded ? ROW + 5 : Math.max(rows + CAPTION, 36);
}

/** What the last block holds, as far as there is room: the whole of it, or what stands before the comma. */
function note(cells, words, { x, y }, width) {
  const fits = [words, words.split(", ")[0]].find((text) => text.length * 6 < width - x);
  if (fits) cells.note(x, y + CELL / 2, fits);
}

/** Of a request that was admitted in this step: how many blocks it hit, how many it took, and what it writes there. */
function joinedNow(items, { block_size: size }) {
  if (!items.length || !items.every((cell) => cell[4])) return null;
  const hits = items.filter((cell) => cell[2] === "hit");
  const fresh = items.filter((cell) => cell[2] === "new");
  if (hits.length + fresh.length < items.length || fresh.some((cell, i) => items[hits.length + i] !== cell)) return null;
  return { hits: hits.length, reused: hits.length * size, fresh: fresh.length, written: fresh.reduce((sum, cell) => sum + cell[3], 0) };
}

function captions(cells, { hits, reused, fresh, written }, { x, y, pitch }, width) {
  const words = [hits && `${hits} hit${hits === 1 ? "" : "s"}, ${reused} tokens reused`, fresh && `${fresh} new, ${written} token${written === 1 ? "" : "s"} to write`];
  let from = x;
  words.forEach((text, i) => {
    if (!text) return;
    const at = Math.max(from, i && hits ? x + hits * pitch + APART : x);
    if (at + text.length * 6 > width) return;
    cells.note(at, y, text, { size: 11.5 });
    from = at + text.length * 6 + 8;
  });
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

function label(cells, table, model, { y, folded, several, narrow, first, label: place }) {
  if (!cells.sees(y, 36)) return; // to measure a name costs more than to draw it
  const name = fitText(table.id, place.name, { size: 12.5, bold: true });
  if (first) {
    cells.swatch(1.5, y + 4, table.request % 8);
    cells.note(17, y + 10, [[name, true]], { tone: "ink", size: 12.5 });
  }
  if (several) {
    const group = model.groups[table.group];
    const words = `${narrow ? group.short : group.name} · ${group.block_size}`;
    const room = place.wide - place.name - 26;
    const short = fitText(words, room, { size: 11.5 }) === words ? words : `${group.short} · ${group.block_size}`;
    cells.note(17 + place.name + 3, y + 10, fitText(short, room, { size: 11.5 }), { size: 11.5 });
  } else if (!folded) {
    cells.note(17, y + 25, table.total === 1 ? "1 block" : `${table.total} blocks`, { size: 11.5 });
  }
}

/** A cell's look from an entry of a table. */
export function tableCell([, block, kind, filled, changed, hashed], table, { pool }) {
  if (kind === "null") return { block: 0, kind: "null", changed };
  if (kind === "lookahead") return { block, kind: "lookahead", changed };
  const shared = pool.refs[block] > 1;
  return {
    block, kind: "held", hues: shared ? pool.hues(block) : [table.request % 8], part: shared ? 1 : filled / table.block_size,
    changed, hashed, quiet: !changed, underlined: kind === "hit" || kind === "copy",
  };
}
