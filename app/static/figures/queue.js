// The free queue in its true order, head at the left. What left it in this step is lifted above, what came in is set below.

import { Cells, idWidth } from "./cells.js";
import { fitText } from "./plot.js";

const GUTTER = 3;
const CELL = 20;
const ROW = CELL + GUTTER;
const FOLD = 116; // px
const LEFT = 2.5;
const TOP = 2.5;
const STRIP = 41;
const LAST = 6;
const MOST_GROUPS = 3;
const AT_TAIL = ["tail", "back"];

/** How wide a cell is, how many stand in a row, where the strip begins, and how many rows it may take. */
function shapeOf(width, size, top, rows) {
  const cell = idWidth(size);
  const pitch = cell + GUTTER;
  const fold = Math.ceil(FOLD / pitch);
  return { cell, pitch, fold, top, columns: Math.max(fold + 3, Math.floor((width - LEFT) / pitch)), rows };
}

/** The strip alone, without what moved. */
export function queueStrip(model, width, { spot }) {
  const shape = shapeOf(width, model.pool.size, TOP, width < 400 ? 2 : 1);
  const cells = new Cells({ spot });
  const end = strip(cells, model.queue, shape, model.pool);
  captions(cells, model.queue, shape, end, width);
  return cells.figure(width, TOP + shape.rows * ROW + 16);
}

export function queueFigure(model, width, { spot }) {
  const shape = shapeOf(width, model.pool.size, STRIP, width < 480 ? 3 : 1);
  const cells = new Cells({ spot });
  const { queue, pool } = model;
  const end = strip(cells, queue, shape, pool);
  const below = STRIP + shape.rows * ROW + 22;
  const up = new Cells({ spot });
  // Of several rows only the one beside the groups can be pointed at.
  const tail = end && shape.rows === 1 ? boxAt(end - 1, shape).x : null;
  const head = end ? LEFT : null;
  moved(up, queue.out, width, TOP, { left: "head", shape, lifted: true, ends: { head, tail } });
  moved(cells, queue.in, width, below, { left: "front", shape, lifted: false, ends: { head: shape.rows === 1 ? head : null, tail } });
  captions(cells, queue, shape, end, width);
  if (!queue.out.length && !queue.in.length) cells.note(0, TOP + 10, "No block left the queue or came in.");
  return cells.figure(width, below + CELL + 8, up);
}

/** The strip itself; of a long queue the middle is folded. Returns how many places it takes. */
function strip(cells, queue, shape, pool) {
  const { columns, rows, fold } = shape;
  const room = columns * rows;
  const { head, tail } = queue;
  const all = queue.free === head.length ? head : null;
  const last = Math.min(LAST, Math.floor((room - fold) / 3));
  const items = all && all.length <= room ? all : [...head.slice(0, room - last - fold), null, ...(all ?? tail).slice(-last)];
  let place = 0;
  for (const item of items) {
    const box = boxAt(place, shape);
    if (item === null) {
      const words = foldWords(queue, items);
      cells.fold({ ...box, w: fold * shape.pitch - GUTTER, changed: foldDiffers(queue, items) }, words, words.length > 19 ? 9.5 : 11);
      place += fold;
      continue;
    }
    cells.add({ ...box, ...freeCell(item, pool), bold: place === 0 });
    place += 1;
  }
  return place;
}

function boxAt(place, { columns, pitch, cell, top }) {
  return { x: LEFT + (place % columns) * pitch, y: top + Math.floor(place / columns) * ROW, w: cell, h: CELL };
}

function freeCell([block, hashed, changed], pool) {
  return { block, kind: hashed ? "cached" : "free", hashed, changed, lost: pool.lostHash(block) };
}

/** Whether one of the blocks that are not drawn is to be ringed. Of what moved, none is: it stands apart. */
function foldDiffers({ head, tail, more }, items) {
  const drawn = new Set(items.map((item) => item?.[0]));
  return more > 0 || (more === 0 && [...head, ...tail].some(([block, , differs]) => differs && !drawn.has(block)));
}

function foldWords(queue, items) {
  const hashed = queue.hashed - items.reduce((sum, item) => sum + (item && item[1] ? 1 : 0), 0);
  const more = `${queue.free - (items.length - 1)} more`;
  return hashed ? `${more}, ${hashed} hashed` : more;
}

function captions(cells, queue, { columns, rows, pitch, cell, top }, end, width) {
  const used = Math.min(rows, Math.max(1, Math.ceil(end / columns)));
  const y = top + used * ROW;
  if (!queue.free) {
    cells.note(0, top + 10, "Nothing is free.", { tone: "ink2" });
    return;
  }
  // Beneath several rows no mark stands by the head or the tail: they are named.
  const [head, tail] = [queue.head[0], [...queue.head, ...queue.tail].at(-1)].map((one) => (used > 1 ? ` ${one[0]}` : ""));
  const next = `head${head}, handed out next${queue.head[0][1] ? ": its hash is lost then" : ""}`;
  if (used === 1) cells.needle(LEFT + cell / 2, y);
  const x = used === 1 ? LEFT + cell / 2 + 7 : 0;
  cells.note(x, y + 6, next);
  const last = used === 1 ? LEFT + Math.min(end, columns) * pitch - GUTTER : width - 2;
  if (last > x + next.length * 6 + 40) cells.note(last, y + 6, `tail${tail}`, { anchor: "end" });
}

/** Groups of blocks that moved: those at the head's end from the left, the others from the right. */
function moved(cells, groups, width, y, { left, shape, lifted, ends }) {
  const { pitch, cell } = shape;
  const space = groups.length > 1 ? width / Math.min(groups.length, MOST_GROUPS) : width;
  const most = Math.max(2, Math.floor((space - Math.min(200, Math.max(104, space * 0.48))) / pitch));
  let [from, to] = [LEFT, width - LEFT];
  groups.slice(0, MOST_GROUPS).forEach((group, i) => {
    const size = Math.min(most, group.total);
    const isHead = group.end === left;
    const onLeft = isHead || (i === 0 && groups.length > 2);
    let x = onLeft ? from : to - size * pitch + GUTTER;
    let words = onLeft;
    if (AT_TAIL.includes(group.end) && ends.tail !== null && !(onLeft && !isHead)) {
      // Its last block stands by the end of the queue; the words where there is room for them.
      const first = groups.length > 1 ? to - space : LEFT;
      x = Math.min(x, Math.max(first, ends.tail - (size - 1) * pitch));
      words = x - first < Math.min(200, space - size * pitch - 10);
    }
    groupCells(cells, group, { x, y, w: cell, h: CELL, pitch }, size);
    groupWords(cells, group, words ? x + size * pitch + 5 : x - 8, y, {
      onLeft: words, room: space - size * pitch - 10, more: i === MOST_GROUPS - 1 ? groups.length - MOST_GROUPS : 0,
    });
    const end = isHead ? ends.head : AT_TAIL.includes(group.end) ? ends.tail : null;
    if (end !== null && end >= x - 1 && end <= x + (size - 1) * pitch + 1) cells.pointer(end + cell / 2, lifted ? y + CELL + 5 : y - 12);
    if (onLeft) from += space;
    else to -= space;
  });
}

/** What doesn't fit is folded at the side away from the end of the queue. */
function groupCells(cells, { blocks, hashed, total, end }, { x, y, w, h, pitch }, size) {
  const atTail = AT_TAIL.includes(end);
  const most = total > size ? size - 1 : size;
  const from = atTail ? blocks.length - Math.min(most, blocks.length) : 0;
  const first = atTail && total > size ? 1 : 0; // the place of the first block
  if (first) fold(cells, { x, y, w, h }, total - most, true);
  blocks.slice(from, from + most).forEach((block, i) => {
    const mark = hashed[from + i];
    cells.add({ x: x + (first + i) * pitch, y, w, h, block, kind: mark ? "cached" : "free", hashed: mark, changed: true, apart: !first && i === 0 });
  });
  if (total > size && !first) fold(cells, { x: x + most * pitch, y, w, h }, total - most, false);
}

function fold(cells, box, more, apart) {
  const { x, y, w, h } = box;
  cells.add({ ...box, kind: "fold", changed: true, apart });
  const words = `+${more}`;
  cells.note(x + w / 2, y + h / 2, words, { tone: "ink2", anchor: "middle", size: words.length > 3 ? 9 : 10 });
}

function groupWords(cells, group, x, y, { onLeft, room, more }) {
  const [head, rest] = told(group.why);
  const hashed = group.hashed.filter(Boolean).length;
  const detail = rest || (hashed === 0 ? "none hashed" : hashed === group.total ? "all hashed" : `${hashed} of ${group.total} hashed`);
  const anchor = onLeft ? "start" : "end";
  const bold = { size: 11.5, bold: true };
  cells.note(x, y + 4, [[fitText(head, room, bold), true]], { tone: "ink", anchor, size: 11.5 });
  cells.note(x, y + 17, fitText(more > 0 ? `and ${more} more moves` : detail, room, { size: 11.5 }), { anchor, size: 11.5 });
}

/** "freed: warm finished; hashed, so to the back" in two lines: what happened, and what follows. */
function told(why) {
  const text = why.replace(/^freed: /, "");
  const at = text.includes("; ") ? text.indexOf("; ") : text.indexOf(": ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 2)];
}
