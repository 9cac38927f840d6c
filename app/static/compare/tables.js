// The block tables of one side of a comparison, beneath the words of their requests. What is the same folds to its ends.

import { Cells, idWidth } from "../figures/cells.js";
import { tableCell } from "../figures/tables.js";

const ROW = 23;
const CELL = 20;
const GROUP = 74; // px, a group's name
const LEFT = 1.5;
const LEAST = 12; // cells that are the same fold from there on
const [FIRST, LAST] = [6, 3];
const MOST_ROWS = 4;
const FOLD = 116; // px
const NARROW = 240; // px: a group's name stands over its table
const NAME = 17; // px
export const BELOW = 9;

/** How high the tables of each request are, [px, ..] in order of the rows. */
export function tableHeights(model, rows, width) {
  const shape = shapeOf(model, width);
  return rows.map((id) => tablesOf(model, id).reduce((sum, table) => sum + shape.above + rowsOf(laidOut(table, shape), shape) * ROW, 0));
}

/** `tops`: where each request's tables begin. */
export function comparedTables(model, width, { rows, tops, height, spot, clip }) {
  const shape = shapeOf(model, width);
  const cells = new Cells({ spot, clip });
  rows.forEach((id, i) => {
    let y = tops[i];
    for (const table of tablesOf(model, id)) y += draw(cells, table, model, shape, y);
  });
  return cells.figure(width, height);
}

function tablesOf(model, id) {
  return model.tables.filter((table) => table.id === id);
}

function shapeOf(model, width) {
  const several = model.groups.length > 1;
  const left = several && width >= NARROW ? GROUP : 0;
  const least = idWidth(model.pool.size) + 3;
  const columns = Math.max(2, Math.min(24, Math.floor((width - left - LEFT) / least)));
  const pitch = Math.min(least + 4.5, (width - left - LEFT) / columns);
  const span = Math.min(columns, Math.ceil(FOLD / pitch));
  return { width, several, left, columns, pitch, span, above: several && !left ? NAME : 0 };
}

/** The cells to be drawn, and folds { more, differs } between them. */
function laidOut(table, { columns }) {
  const stretches = [];
  for (const cell of table.cells) {
    const last = stretches.at(-1)?.cells.at(-1);
    if (last && cell[0] !== last[0] + 1) stretches.push({ differs: table.more > 0, cells: [], hidden: cell[0] - last[0] - 1 });
    const differs = Boolean(cell[4]);
    if (!stretches.length || stretches.at(-1).hidden || stretches.at(-1).differs !== differs) stretches.push({ differs, cells: [] });
    stretches.at(-1).cells.push(cell);
  }
  const room = MOST_ROWS * columns;
  return stretches.flatMap(({ differs, cells, hidden }) => {
    if (hidden) return [{ more: hidden, differs }];
    const [first, last, most] = differs ? [room / 2, room / 4, room] : [FIRST, LAST, LEAST];
    if (cells.length <= most) return cells;
    return [...cells.slice(0, first), { more: cells.length - first - last, differs }, ...cells.slice(-last)];
  });
}

function placesOf(items, { columns, span: fold }) {
  let place = 0;
  return items.map((item) => {
    const span = item.more ? fold : 1;
    if ((place % columns) + span > columns) place += columns - (place % columns);
    const at = place;
    place += span;
    return { item, at, span };
  });
}

function rowsOf(items, shape) {
  const last = placesOf(items, shape).at(-1);
  return last ? Math.floor(last.at / shape.columns) + 1 : 1;
}

function draw(cells, table, model, shape, from) {
  const { columns, pitch, left, several, above } = shape;
  const y = from + above;
  if (several) cells.note(0, from + (above ? NAME : CELL) / 2 + 1, model.groups[table.group].short, { size: 11.5 });
  const places = placesOf(laidOut(table, shape), shape);
  let end = { x: left, y };
  for (const { item, at, span } of places) {
    const box = { x: left + LEFT + (at % columns) * pitch, y: y + 1.5 + Math.floor(at / columns) * ROW, w: span * pitch - 3, h: CELL };
    if (item.more) cells.fold({ ...box, changed: item.differs }, `${item.more} more, ${item.differs ? "other blocks" : "the same"}`);
    else cells.add({ ...box, ...tableCell(item, table, model) });
    end = { x: box.x + box.w + 8, y: box.y };
  }
  if (table.note && table.note.length * 6 < shape.width - end.x) cells.note(end.x, end.y + CELL / 2, table.note);
  return above + rowsOf(laidOut(table, shape), shape) * ROW;
}
