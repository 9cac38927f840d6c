// A figure on the page: when it is drawn, where its blocks are, and the ink outlines over the blocks that are pointed at.

import { draw } from "./plot.js";
import { WordsLayer } from "./words.js";

const AROUND = 60; // px
const SVG = "http://www.w3.org/2000/svg";

export class Host {
  /** `build(width, seen)` gives { traces, layout, words, hits }; `locate`, `boxes` and `next` default to the hits. */
  constructor(name, build, { locate, boxes, next } = {}) {
    this.name = name;
    this.element = document.getElementById(`figure-${name}`);
    this.plot = this.element.querySelector(".plot");
    this.words = new WordsLayer(this.element);
    this.many = this.words.svg.appendChild(document.createElementNS(SVG, "path"));
    this.many.setAttribute("class", "many");
    this.build = build;
    this.hits = [];
    this.locate = locate ?? ((x, y) => this.#hitAt(x, y));
    this.boxes = boxes ?? ((block) => this.hits.filter((hit) => hit.block === block));
    this.next = next ?? ((from, key) => this.#nextHit(from, key));
    this.outlines = new Map();
    this.spot = null; // blocks that alone are unveiled
    this.top = 0; // of the part in sight, when it was drawn
    this.element.addEventListener("scroll", () => this.#scrolled(), { passive: true });
  }

  async draw() {
    this.width ??= Math.floor(this.element.clientWidth);
    this.height ??= Math.floor(this.element.clientHeight);
    if (this.width < 40) return; // folded away: drawn when it opens
    const figure = this.build(this.width, { room: this.height, clip: this.#seen(), spot: this.spot });
    this.hits = figure.hits ?? [];
    this.#frame(figure);
    this.drawn = (this.drawn ?? 0) + 1;
    await draw(this.plot, figure.traces, figure.layout);
    for (const [kind, block] of [...this.outlines.entries()].map(([kind, one]) => [kind, one.block])) this.outline(kind, block);
    if (this.pointed) this.outlineMany(this.pointed);
  }

  #frame({ words, layout, height = layout.height }) {
    if (this.framed !== height) this.plot.style.height = `${height}px`;
    this.framed = height;
    this.words.draw(words ?? [], layout.width, height);
  }

  /** Of a figure that scrolls, the part in sight with some more around; the rest isn't drawn. */
  #seen() {
    return this.element.classList.contains("scrolls") ? [this.top - AROUND, this.top + this.height + AROUND] : null;
  }

  #scrolled() {
    if (Math.abs(this.element.scrollTop - this.top) < AROUND / 2) return;
    this.top = this.element.scrollTop;
    this.draw();
  }

  /** Note a new size, from the observer: to ask the element would make the browser lay out the page in between. */
  resized(width, height) {
    const changed = this.width !== undefined && (width !== this.width || height > this.height);
    this.width = width;
    this.height = height;
    return changed;
  }

  describe(sentence) {
    if (sentence) this.plot.setAttribute("aria-label", sentence);
  }

  /** Put the outline of `kind` (hovered, selected, focused) on a block; null takes it away. */
  outline(kind, block) {
    for (const mark of this.outlines.get(kind)?.marks ?? []) mark.remove();
    if (block === null) {
      this.outlines.delete(kind);
      return;
    }
    const marks = this.boxes(block).map((box) => this.#mark(kind, box));
    this.outlines.set(kind, { block, marks });
  }

  #mark(kind, { x, y, w, h }) {
    const mark = document.createElement("i");
    mark.className = `outline ${kind}`;
    const grow = Math.max(0, (7 - Math.min(w, h)) / 2);
    mark.style.cssText = `left:${x - grow - 1.5}px;top:${y - grow - 1.5}px;width:${w + 2 * grow + 3}px;height:${h + 2 * grow + 3}px`;
    return this.element.appendChild(mark);
  }

  /** Outline many blocks at once, as one path; null takes it away. */
  outlineMany(blocks) {
    this.pointed = blocks;
    const boxes = blocks ? [...blocks].flatMap((block) => this.boxes(block)) : [];
    const path = boxes.map(({ x, y, w, h }) => `M${x - 0.5},${y - 0.5}h${w + 1}v${h + 1}h${-w - 1}z`).join("");
    this.many.setAttribute("d", path);
  }

  #hitAt(x, y) {
    const hit = this.hits.find((cell) => x >= cell.x - 1 && x <= cell.x + cell.w + 1 && y >= cell.y - 1 && y <= cell.y + cell.h + 1);
    return hit ? hit.block : null;
  }

  /** The block under a pointer event. */
  blockUnder(event) {
    const box = this.plot.getBoundingClientRect();
    return this.locate(event.clientX - box.left, event.clientY - box.top);
  }

  /** The cell that an arrow key leads to from `from` (null: none yet); null where there is none. */
  #nextHit(from, key) {
    const { hits } = this;
    const at = from && hits.findIndex((hit) => hit.x === from.x && hit.y === from.y);
    const here = hits[at] ?? hits.find((hit) => hit.block === from?.block);
    if (!here) return hits[0] ?? null;
    if (key === "Home") return hits[0];
    if (key === "End") return hits.at(-1);
    const across = key === "ArrowRight" || key === "ArrowLeft";
    const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    const far = (hit) => {
      const [dx, dy] = [hit.x + hit.w / 2 - here.x - here.w / 2, hit.y - here.y];
      if (across) return sign * dx > 1 && Math.abs(dy) < here.h / 2 ? sign * dx : Infinity;
      return sign * dy > here.h / 2 ? sign * dy * 2 + Math.abs(dx) : Infinity;
    };
    const best = hits.reduce((least, hit) => (far(hit) < far(least) ? hit : least), hits[0]);
    if (far(best) < Infinity) return best;
    return across ? hits[hits.indexOf(here) + sign] ?? null : null; // on to the next row
  }

  /** Scroll a cell into sight. */
  reveal({ y, h }) {
    const { scrollTop, clientHeight } = this.element;
    if (y < scrollTop) this.element.scrollTop = y - 8;
    else if (y + h > scrollTop + clientHeight) this.element.scrollTop = y + h + 8 - clientHeight;
  }
}
