// All figures of the page: which are drawn again after a frame, and what is pointed at in all of them.

import { writeFacts } from "./facts.js";
import { gaugeFigure } from "./gauge.js";
import { hashesFigure } from "./hashes.js";
import { Host } from "./host.js";
import { blockAt, cellBox, PITCHES, poolFigure, poolGrid } from "./pool.js";
import { queueFigure } from "./queue.js";
import { seriesFigure } from "./series.js";
import { splitFigure } from "./split.js";
import { tablesFigure } from "./tables.js";
import { onThemeChange } from "./theme.js";

const PHONE = matchMedia("(max-width: 700px)"); // one column: the pool may be tall
const WIDE = 620; // px, of what is folded away
const SMALL = { usage: 360, blocks: 360, series: 360 }; // px: by themselves they have more room
const GAUGE = 150; // px
const TALLEST = 8000; // px
const MOST_IDS = 4000;
export const GRIDS = ["pool", "queue", "tables", "hashes"];

export class Figures {
  constructor(model) {
    this.model = model;
    this.hosts = {
      pool: this.#poolHost(),
      queue: new Host("queue", (width, seen) => queueFigure(model, width, seen)),
      tables: new Host("tables", (width, seen) => tablesFigure(model, width, seen)),
      hashes: new Host("hashes", (width, seen) => hashesFigure(model, width, seen)),
      usage: new Host("usage", (width, seen) => gaugeFigure(model, width, seen.room)),
      blocks: new Host("blocks", (width) => splitFigure(model, width)),
      series: new Host("series", (width) => seriesFigure(model, width)),
    };
    this.pitch = null; // of the enlarged pool; null: the largest that fits
    onThemeChange(() => this.draw(Object.keys(this.hosts)));
    this.#watchWidths();
  }

  #poolHost() {
    const { model } = this;
    return new Host("pool", (width, { room, clip, spot }) => {
      this.grid = poolGrid(model.pool.size, width, this.enlarged ? room - 4 : PHONE.matches ? 300 : 143, {
        asked: this.enlarged ? this.pitch : null, enlarged: this.enlarged,
      });
      return poolFigure(model, this.grid, { spot, clip });
    }, {
      locate: (x, y) => this.grid && blockAt(this.grid, x, y),
      boxes: (block) => (this.grid && block < this.grid.size ? [{ block, ...cellBox(this.grid, block) }] : []),
      next: (from, key) => this.#nextInPool(from, key),
    });
  }

  #nextInPool(from, key) {
    const { columns, size } = this.grid;
    const at = from?.block ?? 0;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + columns, ArrowUp: at - columns, Home: 0, End: size - 1 }[key];
    return to >= 0 && to < size ? { block: to, ...cellBox(this.grid, to) } : null;
  }

  /** The pool fills the centre, and scrolls where it is zoomed in; or back. */
  enlarge(on) {
    const { element } = this.hosts.pool;
    this.enlarged = on;
    this.pitch = null;
    element.classList.toggle("scrolls", on);
    element.scrollTop = 0;
    this.#remeasure();
  }

  /** One pitch up or down. */
  zoom(step) {
    const at = PITCHES.indexOf(this.grid.pitch);
    const to = PITCHES[at - step];
    const { pool } = this.hosts;
    if (to === undefined || to > Math.max(28, pool.element.clientWidth / 10.5)) return;
    const row = pool.element.scrollTop / this.grid.pitch * this.grid.columns; // the block in the first row stays there
    this.pitch = to;
    this.draw(["pool"]).then(() => { pool.element.scrollTop = row / this.grid.columns * this.grid.pitch; });
  }

  #remeasure() {
    for (const host of Object.values(this.hosts)) { host.width = undefined; host.height = undefined; host.top = 0; }
    this.draw(Object.keys(this.hosts));
  }

  /** Draw the named panels again; the others aren't touched. `settled` is the latest drawing. */
  draw(names) {
    this.settled = this.#draw(names);
    return this.settled;
  }

  async #draw(names) {
    if (!this.model.pool) return;
    writeFacts(this.model);
    const drawn = [...names].map((name) => {
      this.hosts[name].describe(this.model.alt?.[name]);
      return this.hosts[name].draw();
    });
    await Promise.all(drawn);
  }

  /** A figure to be saved: all of it, also what is folded or out of sight on the page. */
  whole(name) {
    const { hosts: { [name]: host }, model } = this;
    const width = SMALL[name] ?? (host.width >= 40 ? host.width : WIDE);
    if (name === "pool") return poolFigure(model, this.#wholeGrid(width), { spot: host.spot, most: MOST_IDS });
    return host.build(width, { room: name === "usage" ? GAUGE : TALLEST, clip: null, spot: host.spot, whole: TALLEST });
  }

  /** As on the page, or with smaller cells where that would be too tall. */
  #wholeGrid(width) {
    const { size } = this.model.pool;
    let grid = this.grid ?? poolGrid(size, width, 143);
    while (grid.height > TALLEST && grid.pitch > 1) grid = poolGrid(size, width, TALLEST, PITCHES[PITCHES.indexOf(grid.pitch) + 1]);
    return grid;
  }

  outline(kind, block) {
    for (const chip of document.querySelectorAll(`#call-panel .pointed-${kind}`)) chip.classList.remove(`pointed-${kind}`, "pointed");
    if (block !== null) {
      for (const chip of document.querySelectorAll(`#call-panel [data-block="${block}"]`)) chip.classList.add(`pointed-${kind}`, "pointed");
    }
    for (const name of GRIDS) this.hosts[name].outline(kind, block);
  }

  /** Outline the blocks that a term counts, in every picture; null takes it away. */
  outlineMany(blocks) {
    for (const name of GRIDS) this.hosts[name].outlineMany(blocks);
  }

  /** Only these blocks are unveiled; null: what changed is. Returns which panels have to be drawn again. */
  setSpot(blocks) {
    const before = this.hosts.pool.spot;
    if (before === blocks || (before && blocks && before.size === blocks.size && [...blocks].every((block) => before.has(block)))) return [];
    for (const name of GRIDS) this.hosts[name].spot = blocks;
    return GRIDS;
  }

  #watchWidths() {
    const observer = new ResizeObserver((entries) => {
      const names = [];
      for (const { target, contentRect } of entries) {
        const host = this.hosts[target.id.replace("figure-", "")];
        if (host.resized(Math.floor(contentRect.width), Math.floor(contentRect.height))) names.push(host.name);
      }
      if (names.length) this.draw(names);
    });
    for (const host of Object.values(this.hosts)) observer.observe(host.element);
  }
}
