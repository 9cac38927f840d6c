// What the states of a saved picture look like, in words: by itself it has neither the page's legend nor its cards.
//
// Only of what is in the picture, each drawn by the same builder, with the requests' own names.

import { Cells } from "./cells.js";
import { fitText, NOWHERE, widthOf } from "./plot.js";

const CELL = 16;
const ROW = 24;
const GAP = 18;
const NAME = 150; // px
const MOST_OWNERS = 24;
const WITH = ["pool", "queue", "tables"];

/** The legend of a picture as a figure of its own, or null where it needs none. */
export function legendFigure(name, figure, model) {
  if (!WITH.includes(name)) return null;
  const drawn = new Set(figure.layout.shapes.filter(({ path }) => path !== NOWHERE).map((shape) => shape.name.replace(/^lifted /, "")));
  const plain = name === "pool" && ![...drawn].some((part) => part === "dots" || part.startsWith("texture"));
  const entries = [...ownersOf(name, model), ...statesOf(name, drawn, model, figure)];
  return entries.length ? laidOut(entries, figure.layout.width, plain) : null;
}

/** Whose cells they are; of many requests the first ones. The tables have the names beside them. */
function ownersOf(name, { pool, requests }) {
  if (name !== "pool") return [];
  const owners = [...new Set(pool.owners)].filter((number) => number >= 0).sort((a, b) => a - b);
  const named = owners.slice(0, MOST_OWNERS).map((number) => ({ words: `held by ${requests[number]}`, cell: { kind: "held", hues: [number % 8] } }));
  const more = owners.length - named.length;
  return more > 0 ? [...named, { words: `and ${more} more` }] : named;
}

function statesOf(name, drawn, model, figure) {
  const { pool, tables } = model;
  const shared = name === "pool" ? sharedIn(pool) : name === "tables" && tables.some(({ cells }) => cells.some(([, block]) => pool.refs[block] > 1));
  const underlined = figure.words?.some((word) => word.underlined);
  const partly = name === "tables" && tables.some((table) => table.cells.some(([, block, kind, filled]) => kind !== "null" && pool.refs[block] === 1 && filled < table.block_size));
  return [
    shared && { words: "held by two or more", cell: { kind: "held", hues: [1, 2] } },
    drawn.has("cached") && { words: "free, cached", cell: { kind: "cached", hashed: true } },
    drawn.has("empty") && name !== "tables" && { words: "free, empty", cell: { kind: "free" } },
    drawn.has("null") && { words: "null block", cell: { kind: "null" } },
    drawn.has("hashed") && name !== "queue" && { words: "hashed", cell: { kind: "free", hashed: true } },
    partly && { words: "partly full", cell: { kind: "held", hues: [7], part: 0.45 } },
    drawn.has("lookahead") && { words: "lookahead slots", cell: { kind: "lookahead" } },
    underlined && { words: "prefix cache hit", cell: { kind: "free", block: 1, underlined: true } },
    drawn.has("lost") && { words: "lost its hash", cell: { kind: "free", lost: true } },
    (drawn.has("rings") || drawn.has("changed")) && { words: "changed in this step", cell: { kind: "ring", changed: true } },
  ].filter(Boolean);
}

function sharedIn({ refs, size }) {
  for (let block = 1; block < size; block += 1) if (refs[block] > 1) return true;
  return false;
}

/** In rows as wide as the picture. */
function laidOut(entries, width, plain) {
  const cells = new Cells({ plain });
  let [x, y] = [2.5, 3.5];
  for (const { words, cell } of entries) {
    const text = fitText(words, NAME, { size: 12 });
    const wide = (cell ? CELL + 7 : 0) + widthOf(text);
    if (x > 2.5 && x + wide > width) [x, y] = [2.5, y + ROW];
    if (cell) cells.add({ x, y, w: CELL, h: CELL, apart: true, ...cell });
    cells.note(x + (cell ? CELL + 7 : 0), y + CELL / 2, text, { tone: "ink2", size: 12 });
    x += wide + GAP;
  }
  return cells.figure(width, y + CELL + 4);
}
