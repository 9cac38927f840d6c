// The hashed blocks: the prefix tree, each chain of hashes a path, a shared prefix drawn once.

import { Cells, idWidth } from "./cells.js";
import { fitText } from "./plot.js";

const CELL = 18;
const ROW = 34;
const LABEL = 140;
const FOLD = 62; // px
const FORK = 22;
const MAX_ROWS = 60;
const WIDEST = 4000; // px

/** `whole`: nothing is folded that isn't folded in the data, however wide and tall it gets. */
export function hashesFigure(model, width, { clip, spot, whole = null }) {
  const cells = new Cells({ clip, spot });
  const { chains, total } = model.hashes ?? { chains: [], total: 0 };
  if (!total) {
    cells.note(0, 12, model.alt.hashes, { tone: "ink2" });
    return cells.figure(width, 40);
  }
  const pitch = idWidth(model.pool.size) + 1;
  const most = whole ? Math.floor(whole / ROW) : MAX_ROWS;
  let { tree, rows } = layOut(chains, whole ? Infinity : width, pitch, most);
  if (whole) {
    const wide = Math.max(...tree.all.map((node) => node.end)) + 2 * LABEL;
    width = Math.min(Math.max(width, wide), WIDEST);
    if (wide > WIDEST) ({ tree, rows } = layOut(chains, width, pitch, most));
  }
  const start = { x: 4, y: between(tree.roots) + CELL / 2 };
  cells.link(circle(start.x, start.y, 3.5));
  for (const node of tree.roots) link(cells, { ...start, x: 8 }, node);
  for (const node of tree.all) chain(cells, node, model, { width, pitch });
  if (tree.left) cells.note(30, rows * ROW + 8, `${tree.left} more branches`, { tone: "ink2" });
  return cells.figure(width, rows * ROW + (tree.left ? 20 : 0));
}

/** Leaves take rows, top down; a parent stands in the middle of its children. */
function layOut(chains, width, pitch, most) {
  const fold = Math.ceil(FOLD / pitch);
  const all = chains.map((data) => ({ data, children: [] }));
  const byId = new Map(all.map((node) => [node.data.id, node]));
  const roots = [];
  for (const node of all) (byId.get(node.data.parent)?.children ?? roots).push(node);
  let rows = 0;
  const place = (node, x) => {
    if (rows >= most) return false;
    const room = (width - x - LABEL) / pitch;
    node.items = folded(node.data, fold, Math.max(fold + 2, Math.floor(node.children.length && room < Infinity ? Math.min(room * 0.5, 12) : room)));
    node.x = x;
    node.end = x + node.items.reduce((sum, item) => sum + (item.more ? fold : 1), 0) * pitch - 3;
    node.children = node.children.filter((child) => place(child, node.end + FORK));
    if (node.children.length) node.y = between(node.children);
    else { node.y = rows * ROW + 5; rows += 1; }
    return true;
  };
  const shown = roots.filter((root) => place(root, FORK + 4));
  const placed = all.filter((node) => node.y !== undefined);
  return { tree: { roots: shown, all: placed, left: all.length - placed.length }, rows };
}

/** In the middle of two; on top of more, or the start of the path would be out of sight. */
function between(nodes) {
  return nodes.length > 2 ? nodes[0].y : (nodes[0].y + nodes.at(-1).y) / 2;
}

function folded({ cells, total }, fold, room) {
  if (cells.length === total && total <= room) return cells;
  const listed = Math.min(room - fold, cells.length);
  const head = cells.slice(0, Math.ceil(listed / 2));
  const tail = listed > head.length ? cells.slice(-(listed - head.length)) : [];
  const more = total - head.length - tail.length;
  return more > 0 ? [...head, { more }, ...tail] : [...head, ...tail];
}

function chain(cells, node, { pool, groups }, { width, pitch }) {
  const fold = Math.ceil(FOLD / pitch);
  let x = node.x;
  const { y } = node;
  for (const item of node.items) {
    const span = item.more ? fold : 1;
    const w = span * pitch - 3;
    if (x > node.x) cells.link([[x - 3, y + CELL / 2], [x, y + CELL / 2]]);
    if (item.more) {
      cells.fold({ x, y, w, h: CELL }, `${item.more} more`, 10.5);
    } else {
      cells.add({ x, y, w, h: CELL, ...hashCell(item, pool) });
    }
    x += span * pitch;
  }
  for (const child of node.children) link(cells, { x: node.end, y: y + CELL / 2 }, child);
  words(cells, node, groups, x, y, width);
}

function hashCell([block, live, changed], pool) {
  return { block, kind: live ? "held" : "cached", hues: pool.hues(block), hashed: true, changed, quiet: !changed };
}

function words(cells, { data, children, x: from }, groups, x, y, width) {
  const group = groups.length > 1 ? `, ${groups[data.group].short}` : "";
  const count = `${data.total === 1 ? "1 hash" : `${data.total} hashes`}${group}`;
  if (children.length) {
    cells.note(from, y + CELL + 8, "shared", { size: 11 });
    return;
  }
  if (x + 60 > width) return;
  const stored = data.cells.filter((cell) => cell[2]).length;
  const copies = data.cells.filter((cell) => cell[3] > 1).length;
  const second = [stored && `${stored} changed in this step`, copies && `${copies} in several blocks`].filter(Boolean).join(", ");
  const name = data.label ? [[fitText(data.label, Math.max(60, width - x - 90), { bold: true }), true], [`, ${count}`, false]] : [[count, false]];
  cells.note(x + 6, y + (second ? 3 : CELL / 2), name, { tone: "ink", size: 12 });
  if (second) cells.note(x + 6, y + 17, second, { size: 11 });
}

function link(cells, from, node) {
  const y = node.y + CELL / 2;
  const middle = node.x - 10;
  cells.link([[from.x, from.y], [middle, from.y], [middle, y], [node.x, y]]);
}

function circle(x, y, r) {
  return Array.from({ length: 13 }, (_, i) => [x + r * Math.cos((i * Math.PI) / 6), y + r * Math.sin((i * Math.PI) / 6)]);
}
