// All figures of the page: which are drawn again after a frame, and what is pointed at in all of them.

import { gaugeFigure } from "./gauge.js";
import { hashesFigure } from "./hashes.js";
import { Host } from "./host.js";
import { blockAt, cellBox, poolFigure, poolGrid } from "./pool.js";
import { queueFigure } from "./queue.js";
import { tablesFigure } from "./tables.js";
import { onThemeChange } from "./theme.js";

const NARROW = 480;

export class Figures {
  constructor(model) {
    this.model = model;
    let grid = null;
    const pool = new Host("pool", (width, { spot }) => {
      grid = poolGrid(model.pool.size, width, width < NARROW ? 300 : 143);
      this.grid = grid;
      return poolFigure(model, grid, spot);
    }, {
      locate: (x, y) => grid && blockAt(grid, x, y),
      boxes: (block) => (grid && block < grid.size ? [cellBox(grid, block)] : []),
    });
    this.hosts = {
      pool,
      queue: new Host("queue", (width, seen) => queueFigure(model, width, seen)),
      tables: new Host("tables", (width, seen) => tablesFigure(model, width, seen)),
      hashes: new Host("hashes", (width, seen) => hashesFigure(model, width, seen)),
      usage: new Host("usage", (width, seen) => gaugeFigure(model, width, seen.room)),
    };
    onThemeChange(() => this.draw(Object.keys(this.hosts)));
    this.#watchWidths();
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

  outline(kind, block) {
    for (const chip of document.querySelectorAll(`#call .pointed-${kind}`)) chip.classList.remove(`pointed-${kind}`, "pointed");
    if (block !== null) {
      for (const chip of document.querySelectorAll(`#call [data-block="${block}"]`)) chip.classList.add(`pointed-${kind}`, "pointed");
    }
    for (const name of ["pool", "queue", "tables", "hashes"]) this.hosts[name].outline(kind, block);
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

/** The one fact that matters now beside a panel's head. */
function writeFacts({ queue, hashes, usage }) {
  const put = (id, text) => {
    const element = document.getElementById(id);
    if (element.textContent !== text) element.textContent = text;
  };
  put("queue-fact", `${queue.free} free, ${queue.hashed} of them hashed`);
  put("hashes-fact", hashes.total ? `${hashes.total} hashes; a prefix that is shared is drawn once` : "");
  const mark = usage.watermark_at ?? null;
  put("usage-fact", [usage.was == null ? "" : `was ${usage.was.toFixed(2)}`, mark === null ? "" : `watermark at ${mark.toFixed(2)}`].filter(Boolean).join(", "));
}
