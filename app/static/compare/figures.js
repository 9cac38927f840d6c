// All pictures of a comparison: of each side its pool, free queue and tables, drawn as in the workspace, and of both time.

import { Host } from "../figures/host.js";
import { blockAt, cellBox, poolFigure, poolGrid } from "../figures/pool.js";
import { queueStrip } from "../figures/queue.js";
import { onThemeChange } from "../figures/theme.js";
import { bothFigure } from "./series.js";
import { BELOW, comparedTables, tableHeights } from "./tables.js";
import { lanesFigure, timeFigure } from "./time.js";

const KEYS = ["a", "b"];
const POOL = 143; // px
const ABOVE = 7; // px, the rule and the space over the words
const NARROW = 300; // px: two pools side by side on a phone

export class Figures {
  /** `models`: both sides; `data`: what was told of time. */
  constructor(models) {
    this.models = models;
    this.data = null;
    this.grids = [];
    this.hosts = {};
    KEYS.forEach((key, i) => {
      this.hosts[`pool-${key}`] = this.#pool(key, i);
      this.hosts[`queue-${key}`] = new Host(`queue-${key}`, (width, seen) => queueStrip(models[i], width, seen));
      this.hosts[`tables-${key}`] = new Host(`tables-${key}`, (width, seen) => comparedTables(models[i], width, { ...seen, ...this.rows[i] }));
    });
    this.blockHosts = Object.keys(this.hosts);
    this.hosts.time = new Host("time", (width, { room }) => timeFigure(this.data, width, room));
    this.hosts.lanes = new Host("lanes", (width) => lanesFigure(this.data, width, laneNames()));
    this.hosts.over = new Host("over", (width) => bothFigure(this.data, width));
    onThemeChange(() => this.draw());
    this.#watchWidths();
  }

  #pool(key, i) {
    const model = this.models[i];
    const grid = () => this.grids[i];
    return new Host(`pool-${key}`, (width, { clip, spot }) => {
      this.grids[i] = poolGrid(model.pool.size, width, width < NARROW ? POOL + 40 : POOL);
      return poolFigure(model, grid(), { spot, clip });
    }, {
      locate: (x, y) => grid() && blockAt(grid(), x, y),
      boxes: (block) => (grid() && block < grid().size ? [{ block, ...cellBox(grid(), block) }] : []),
      next: (from, key_) => nextInPool(grid(), from, key_),
    });
  }

  /** Another moment. */
  show(data) {
    this.data = data;
    data.sides.forEach((side, i) => this.models[i].apply(side));
    return this.draw();
  }

  draw(names = Object.keys(this.hosts)) {
    if (!this.data) return null;
    if (names.some((name) => name.startsWith("tables"))) this.#placeRows();
    return Promise.all(names.map((name) => {
      const [panel, key] = name.split("-");
      this.hosts[name].describe(key ? this.data.sides[KEYS.indexOf(key)].alt[panel] : null);
      return this.hosts[name].draw();
    }));
  }

  /** Where each request's tables begin: below its words, at the same height on both sides. */
  #placeRows() {
    const lists = KEYS.map((key) => document.getElementById(`requests-${key}`));
    const heights = lists.map((list, i) => tableHeights(this.models[i], this.data.rows, list.clientWidth));
    const rows = lists.map((list) => [...list.querySelectorAll("[data-row]")]);
    const told = rows.map((some) => some.map((row) => row.querySelector(".words").offsetHeight));
    this.rows = rows.map((some) => {
      const tops = [];
      let y = 0;
      some.forEach((row, j) => {
        const words = Math.max(...told.map((side) => side[j])) + ABOVE;
        const high = Math.max(...heights.map((side) => side[j]));
        tops.push(y + words);
        y += words + high + BELOW;
        row.style.height = `${words + high + BELOW}px`;
      });
      return { rows: this.data.rows, tops, height: Math.max(y, 1) };
    });
  }

  outline(kind, block) {
    for (const name of this.blockHosts) this.hosts[name].outline(kind, block);
  }

  #watchWidths() {
    const observer = new ResizeObserver((entries) => {
      const names = new Set();
      for (const { target, contentRect } of entries) {
        const host = this.hosts[target.id.replace("figure-", "")];
        if (!host.resized(Math.floor(contentRect.width), Math.floor(contentRect.height))) continue;
        if (host.name.startsWith("tables")) KEYS.forEach((key) => names.add(`tables-${key}`));
        else names.add(host.name);
      }
      if (names.size) this.draw([...names]);
    });
    for (const host of Object.values(this.hosts)) observer.observe(host.element);
  }
}

function laneNames() {
  return [...document.querySelectorAll("#aspects [data-aspect]")].map((row) => row.dataset.aspect);
}

function nextInPool(grid, from, key) {
  const at = from?.block ?? 0;
  const { columns, size } = grid;
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + columns, ArrowUp: at - columns, Home: 0, End: size - 1 }[key];
  return to >= 0 && to < size ? { block: to, ...cellBox(grid, to) } : null;
}
