// The one builder of block cells: pool, free queue, block tables and hashed blocks draw a state the same way.
//
// A figure adds its cells in pixels and gets Plotly traces and shapes back, always as many and in the same order.
// Fills, textures and texts are traces; edges and rings are shapes, one SVG path each: as lines of a trace every cell
// would be an element of its own, and a step would take three times as long.

import { Fill, Line, Texts } from "./paths.js";
import { escapeText } from "./plot.js";
import { theme, withAlpha } from "./theme.js";

const OWNERS = 8;
const ID_SIZE = 10.5;
const EDGE = 0.5;

/** How wide a cell has to be for the largest id of a pool. */
export function idWidth(size) {
  return 20 + 7 * Math.max(0, String(size - 1).length - 3);
}

export class Cells {
  /** `clip` is the part that is seen, [top, bottom]: what lies outside is kept for hits, but not drawn. */
  constructor({ ids = true, radius = 1.2, ring = 1.5, clip = null } = {}) {
    Object.assign(this, { theme: theme(), ids, radius, ringGap: ring, clip, hits: [], runs: [] });
    this.fills = Object.fromEntries(["empty", "cached", "corners", "veil"].map((name) => [name, new Fill()]));
    this.owners = Array.from({ length: OWNERS }, () => new Fill());
    const lines = ["links", "empty", "cached", "lookahead", "marks", "lost", "rings"];
    this.lines = Object.fromEntries(lines.map((name) => [name, new Line()]));
    this.edges = Array.from({ length: OWNERS }, () => new Line());
    this.plates = { x: [], y: [] };
    this.names = new Texts();
    this.notes = new Texts();
  }

  /**
   * Add one cell. `kind`: null, free, cached, held, lookahead, fold, or ring (nothing but that). Of a held one `hues` are
   * its holders' hues, the longer holder first; `part` is how much of it is filled. `quiet` puts the veil over it.
   */
  add(cell) {
    const { x, y, w, h, kind } = cell;
    if (cell.block !== undefined) this.hits.push(cell);
    if (this.#hidden(y, h)) return;
    if (kind === "held") this.#held(cell);
    else if (kind === "lookahead") this.lines.lookahead.rectangle(x, y, w, h, this.radius);
    else if (kind !== "ring") this.#plain(cell, kind === "cached" ? "cached" : "empty");
    if (kind === "null") this.lines.marks.line([[x + 3, y + h - 3], [x + w - 3, y + 3]]);
    if (cell.hashed) this.#corner(cell);
    if (cell.lost) this.lines.lost.polygon([[x + w - 7, y + 1], [x + w - 1, y + 1], [x + w - 1, y + 7]]);
    if (cell.quiet && kind === "held") this.fills.veil.rectangle(x - EDGE, y - EDGE, w + 2 * EDGE, h + 2 * EDGE);
    if (cell.changed) this.#run(cell);
    if (this.ids && cell.block !== undefined) this.#id(cell);
  }

  #hidden(y, h) {
    return this.clip !== null && (y + h < this.clip[0] || y > this.clip[1]);
  }

  #plain({ x, y, w, h }, name) {
    this.fills[name].rectangle(x + EDGE, y + EDGE, w - 2 * EDGE, h - 2 * EDGE);
    this.lines[name].rectangle(x, y, w, h, this.radius);
  }

  #held({ x, y, w, h, hues, part = 1 }) {
    const [first, second] = hues;
    if (hues.length > 1) {
      // Two triangles a seam apart: whoever is drawn first, neither covers the other.
      const upper = [[x, y], [x + w - 1.5, y], [x, y + h - 1.5]];
      const lower = [[x + w, y + 1.5], [x + w, y + h], [x + 1.5, y + h]];
      this.owners[first].polygon(upper);
      this.edges[first].polygon(upper);
      this.owners[second].polygon(lower);
      this.edges[second].polygon(lower);
      return;
    }
    if (part < 1) this.#plain({ x, y, w, h }, "empty");
    if (part <= 0) return;
    const wide = part < 1 ? Math.max(2, w * part) : w;
    this.owners[first].rectangle(x + EDGE, y + EDGE, wide - 2 * EDGE, h - 2 * EDGE);
    this.edges[first].rectangle(x, y, wide, h, part < 1 ? 0 : this.radius);
  }

  #corner({ x, y, w, kind }) {
    const size = w < 18 ? 4.5 : 6.5;
    const inset = kind === "held" ? 0.5 : 0;
    this.fills.corners.polygon([[x + w - size, y + inset], [x + w - inset, y + inset], [x + w - inset, y + size]]);
  }

  /** Neighbours in a row share one ring. */
  #run({ x, y, w, h, apart }) {
    const last = this.runs.at(-1);
    if (last && !apart && last.y === y && last.h === h && x - last.end < 5 && x >= last.end) last.end = x + w;
    else this.runs.push({ x, y, h, end: x + w });
  }

  #id({ x, y, w, h, kind, block, hues = [], bold, underlined, part = 1 }) {
    const { ink, ink3, hues: all } = this.theme;
    const shared = hues.length > 1;
    let colour = kind === "free" || kind === "null" ? ink3 : ink;
    if (kind === "held" && !shared && part > 0.6) colour = all[hues[0]].text;
    if (shared) {
      this.plates.x.push(x + w / 2);
      this.plates.y.push(y + h / 2);
    }
    let label = String(block);
    if (bold) label = `<b>${label}</b>`;
    if (underlined) label = `<u>${label}</u>`;
    this.names.add(x + w / 2, y + h / 2 + 0.5, label, bold ? ink : colour, "middle center", ID_SIZE);
  }

  /** Words beside the cells; `html` may carry <b>, so what a user wrote is escaped by the caller. */
  note(x, y, html, { tone = "ink3", align = "middle right", size = 12 } = {}) {
    if (!this.#hidden(y - 10, 20)) this.notes.add(x, y, html, this.theme[tone], align, size);
  }

  /** The number of cells that are not drawn, in a cell of its own. */
  fold(box, words, size = 11) {
    this.add({ ...box, kind: "fold" });
    this.note(box.x + box.w / 2, box.y + box.h / 2, escapeText(words), { tone: "ink2", align: "middle center", size });
  }

  link(points) {
    const ys = points.map(([, y]) => y);
    if (!this.#hidden(Math.min(...ys), Math.max(...ys) - Math.min(...ys))) this.lines.links.line(points);
  }

  /** An arrow upwards: what moved came or went this way. */
  pointer(x, y) {
    this.lines.rings.line([[x, y + 8], [x, y]]);
    this.lines.rings.line([[x - 3.5, y + 4], [x, y], [x + 3.5, y + 4]]);
  }

  /** A small triangle in ink: the next victim stands here. */
  needle(x, y) {
    this.fills.corners.polygon([[x - 4, y + 6], [x, y], [x + 4, y + 6]]);
  }

  swatch(x, y, hue, size = 11) {
    if (this.#hidden(y, size)) return;
    this.owners[hue].rectangle(x, y, size, size);
    this.edges[hue].rectangle(x, y, size, size, 1.5);
  }

  traces() {
    const t = this.theme;
    return [
      filled("empty", this.fills.empty, t.surface),
      filled("cached", this.fills.cached, t.surface, { shape: ".", fgcolor: t.ink3, size: 4, solidity: 0.14 }),
      ...this.owners.map((fill, i) => owner(fill, t.hues[i], i)),
      filled("hashed", this.fills.corners, t.ink),
      filled("unchanged", this.fills.veil, t.veil),
      this.#plateTrace(),
      texts("ids", this.names, t.mono),
      texts("notes", this.notes, t.sans),
    ];
  }

  /** Under the traces: links and edges. Over them: marks, lost hashes, rings. */
  shapes() {
    const t = this.theme;
    const gap = this.ringGap;
    for (const { x, y, h, end } of this.runs.splice(0)) {
      this.lines.rings.ring(x - gap, y - gap, end - x + 2 * gap, h + 2 * gap, Math.min(3.5, gap * 2.4));
    }
    return [
      stroke(this.lines.links, "below", t.line2),
      stroke(this.lines.empty, "below", t.line2),
      stroke(this.lines.cached, "below", t.ink3, 1, "3px,2px"),
      ...this.edges.map((line, i) => stroke(line, "below", t.hues[i].edge)),
      stroke(this.lines.lookahead, "below", t.ink3, 1, "2px,2px"),
      stroke(this.lines.marks, "above", t.line2),
      stroke(this.lines.lost, "above", t.ink),
      stroke(this.lines.rings, "above", t.accent, gap < 1.5 ? 1.2 : 2),
    ];
  }

  #plateTrace() {
    return {
      type: "scatter", mode: "markers", name: "shared", hoverinfo: "skip", x: this.plates.x, y: this.plates.y,
      marker: { size: 15, color: withAlpha(this.theme.page, 0.95), line: { width: 0 } },
    };
  }
}

function owner(fill, hue, i) {
  const pattern = hue.pattern && { shape: hue.pattern, fgcolor: hue.tex, size: 6, solidity: hue.pattern === "." ? 0.12 : 0.2 };
  return filled(`hue ${i + 1}`, fill, hue.fill, pattern);
}

function filled(name, { x, y }, colour, pattern) {
  const trace = { type: "scatter", mode: "none", name, hoverinfo: "skip", x, y, fill: "toself", fillcolor: colour };
  if (pattern) trace.fillpattern = { ...pattern, bgcolor: colour, fillmode: "replace" };
  return trace;
}

function stroke({ parts }, layer, color, width = 1, dash = "solid") {
  // A shape without a path is an error: an empty one is a point outside, and hidden.
  return { type: "path", path: parts.join("") || "M-9,-9L-9,-9", visible: parts.length > 0, layer, line: { color, width, dash } };
}

function texts(name, texts, family) {
  return {
    type: "scatter", mode: "text", name, hoverinfo: "skip", x: texts.x, y: texts.y, text: texts.text,
    textposition: texts.position, textfont: { family, color: texts.colour, size: texts.size }, cliponaxis: false,
  };
}
