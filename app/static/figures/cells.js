// The one builder of block cells: pool, free queue, block tables and hashed blocks draw a state the same way.
//
// A figure adds its cells in pixels and gets Plotly shapes back, always as many and in the same order: one SVG path a
// state, however many cells. As filled traces, and with a text trace for the ids, a step took ten times as long.

import { box, Line } from "./paths.js";
import { LIFTED, NOWHERE, pixelLayout } from "./plot.js";
import { texture } from "./texture.js";
import { theme } from "./theme.js";
import { Words } from "./words.js";

const OWNERS = 8;
const ID_SIZE = 10.5;
const LAYERS = ["links", "null", "empty", "cached", "dots", "lookahead", "hashed", "unchanged", "aside", "plates", "marks", "lost", "rings"];

/** How wide a cell has to be for the largest id of a pool. */
export function idWidth(size) {
  return 20 + 7 * Math.max(0, String(size - 1).length - 3);
}

export class Cells {
  /**
   * `clip` is the part that is seen, [top, bottom]: what lies outside is kept for hits, but not drawn. `plain` leaves out
   * textures and corners, which small cells have no room for. `spot` is the set of blocks that alone are unveiled.
   */
  constructor({ ids = true, plain = false, radius = 1.2, ring = 1.5, clip = null, spot = null } = {}) {
    Object.assign(this, { theme: theme(), ids, plain, radius, ringGap: ring, clip, spot, hits: [], runs: [], words: new Words() });
    this.lines = Object.fromEntries(LAYERS.map((name) => [name, new Line()]));
    this.owners = Array.from({ length: OWNERS }, () => new Line());
    this.textures = Array.from({ length: OWNERS }, () => new Line());
  }

  /**
   * Add one cell. `kind`: null, free, cached, held, lookahead, fold, or ring (nothing but that). Of a held one `hues` are
   * its holders' hues, the longer holder first; `part` is how much of it is filled. `quiet` puts the veil over it.
   */
  add(cell) {
    const { x, y, w, h, kind } = cell;
    if (cell.block !== undefined) this.hits.push(cell);
    if (!this.sees(y, h)) return;
    if (kind === "held") this.#held(cell);
    else if (kind === "lookahead") this.lines.lookahead.rectangle(x, y, w, h, this.radius);
    else if (kind !== "ring") this.#plain(cell, kind === "cached" || kind === "null" ? kind : "empty");
    if (kind === "null") this.lines.marks.line([[x + 3, y + h - 3], [x + w - 3, y + 3]]);
    if (cell.hashed && !this.plain) this.#corner(cell);
    if (cell.lost) this.lines.lost.polygon([[x + w - 7, y + 1], [x + w - 1, y + 1], [x + w - 1, y + 7]]);
    if (this.#veiled(cell)) this.lines[this.spot ? "aside" : "unchanged"].rectangle(x - 0.5, y - 0.5, w + 1, h + 1, 0);
    if (cell.changed) this.#run(cell);
    if (this.ids && cell.block !== undefined) this.#id(cell);
  }

  /** Unchanged live cells are quiet; while a request or a stage is pointed at, all but its own blocks. */
  #veiled({ block, kind, quiet }) {
    if (this.spot && block !== undefined) return !this.spot.has(block) && kind !== "free" && kind !== "null";
    return quiet && kind === "held";
  }

  /** Whether any of this height is in sight. */
  sees(y, h) {
    return this.clip === null || (y + h >= this.clip[0] && y <= this.clip[1]);
  }

  #plain({ x, y, w, h }, name) {
    this.lines[name].rectangle(x, y, w, h, this.radius);
    if (name === "cached" && !this.plain) texture(this.lines.dots, box(x, y, w, h), ".", 4);
  }

  #held({ x, y, w, h, hues, part = 1 }) {
    const [first, second] = hues;
    if (hues.length > 1) {
      // Two triangles a seam apart: whoever is drawn first, neither covers the other.
      this.#own(first, [[x, y], [x + w - 1.5, y], [x, y + h - 1.5]]);
      this.#own(second, [[x + w, y + 1.5], [x + w, y + h], [x + 1.5, y + h]]);
      return;
    }
    if (part < 1) this.#plain({ x, y, w, h }, "empty");
    if (part <= 0) return;
    const wide = part < 1 ? Math.max(2, w * part) : w;
    this.owners[first].rectangle(x, y, wide, h, part < 1 ? 0 : this.radius);
    this.#texture(first, box(x, y, wide, h));
  }

  #own(hue, points) {
    this.owners[hue].polygon(points);
    this.#texture(hue, points);
  }

  #texture(hue, points) {
    const { pattern } = this.theme.hues[hue];
    if (pattern && !this.plain) texture(this.textures[hue], points, pattern);
  }

  #corner({ x, y, w, kind }) {
    const size = w < 18 ? 4.5 : 6.5;
    const inset = kind === "held" ? 0.5 : 0;
    this.lines.hashed.polygon([[x + w - size, y + inset], [x + w - inset, y + inset], [x + w - inset, y + size]]);
  }

  /** Neighbours in a row share one ring. */
  #run({ x, y, w, h, apart }) {
    const last = this.runs.at(-1);
    if (last && !apart && last.y === y && last.h === h && x - last.end < 5 && x >= last.end) last.end = x + w;
    else this.runs.push({ x, y, h, end: x + w });
  }

  #id({ x, y, w, h, kind, block, hues = [], bold, underlined, part = 1 }) {
    const shared = hues.length > 1;
    let tone = kind === "free" || kind === "null" ? "ink3" : "ink";
    if (kind === "held" && !shared && part > 0.6) tone = `h${hues[0] + 1}`;
    if (shared) this.lines.plates.circle(x + w / 2, y + h / 2, 7.5);
    this.words.add(x + w / 2, y + h / 2, [[String(block), bold]], {
      tone: bold ? "ink" : tone, anchor: "middle", size: ID_SIZE, mono: true, underlined,
    });
  }

  /** Words beside the cells: a text, or pieces [text, bold]. */
  note(x, y, words, { tone = "ink3", anchor = "start", size = 12 } = {}) {
    if (!this.sees(y - 10, 20)) return;
    this.words.add(x, y, typeof words === "string" ? [[words, false]] : words, { tone, anchor, size });
  }

  /** The number of cells that are not drawn, in a cell of its own. */
  fold(place, words, size = 11) {
    this.add({ ...place, kind: "fold" });
    this.note(place.x + place.w / 2, place.y + place.h / 2, words, { tone: "ink2", anchor: "middle", size });
  }

  link(points) {
    const ys = points.map(([, y]) => y);
    if (this.sees(Math.min(...ys), Math.max(...ys) - Math.min(...ys))) this.lines.links.line(points);
  }

  /** An arrow upwards: what moved came or went this way. */
  pointer(x, y) {
    this.lines.rings.line([[x, y + 8], [x, y]]);
    this.lines.rings.line([[x - 3.5, y + 4], [x, y], [x + 3.5, y + 4]]);
  }

  /** A small triangle in ink: the next victim stands here. */
  needle(x, y) {
    this.lines.hashed.polygon([[x - 4, y + 6], [x, y], [x + 4, y + 6]]);
  }

  swatch(x, y, hue, size = 11) {
    if (!this.sees(y, size)) return;
    this.owners[hue].rectangle(x, y, size, size, 1.2);
    this.#texture(hue, box(x, y, size, size));
  }

  /** What a host draws. `lifted` are cells above these that rise to their place after a step. */
  figure(width, height, lifted = null) {
    const shapes = [...this.shapes(), ...(lifted?.shapes() ?? []).map((shape) => ({ ...shape, name: `${LIFTED} ${shape.name}` }))];
    const words = [...this.words.list, ...(lifted?.words.list ?? []).map((word) => ({ ...word, lifted: true }))];
    return { traces: [], layout: pixelLayout(width, height, shapes), height, words, hits: [...this.hits, ...(lifted?.hits ?? [])] };
  }

  /** From below to above. */
  shapes() {
    const t = this.theme;
    const gap = this.ringGap;
    for (const { x, y, h, end } of this.runs.splice(0)) {
      this.lines.rings.ring(x - gap, y - gap, end - x + 2 * gap, h + 2 * gap, Math.min(3.5, gap * 2.4));
    }
    const shape = (name, look) => stroke(name, this.lines[name], look);
    return [
      shape("links", { color: t.line2 }),
      shape("null", { color: t.line2, fill: t.sunk }),
      shape("empty", { color: this.plain ? t.line : t.line2, fill: t.surface }),
      this.plain ? shape("cached", { width: 0, fill: t.ink3 }) : shape("cached", { color: t.ink3, fill: t.surface, dash: "3px,2px" }),
      shape("dots", { color: t.ink3, width: 1.1 }),
      ...this.owners.map((line, i) => stroke(`hue ${i + 1}`, line, { color: t.hues[i].edge, fill: t.hues[i].fill })),
      ...this.textures.map((line, i) => stroke(`texture ${i + 1}`, line, { color: t.hues[i].tex, width: t.hues[i].pattern === "." ? 1.3 : 1 })),
      shape("lookahead", { color: t.ink3, dash: "2px,2px" }),
      shape("hashed", { width: 0, fill: t.ink }),
      shape("unchanged", { width: 0, fill: t.veil }),
      shape("aside", { width: 0, fill: t.heavyVeil }),
      shape("plates", { width: 0, fill: t.page }),
      shape("marks", { color: t.line2 }),
      shape("lost", { color: t.ink }),
      shape("rings", { color: t.accent, width: gap < 1.5 ? 1.2 : 2 }),
    ];
  }
}

/** One shape of a layout from a Line. */
export function stroke(name, { parts }, { color = "rgba(0,0,0,0)", width = 1, dash = "solid", fill = "rgba(0,0,0,0)" }) {
  // Never hidden: to hide or show a shape has everything drawn again.
  return { type: "path", name, path: parts.join("") || NOWHERE, fillcolor: fill, line: { color, width, dash } };
}
