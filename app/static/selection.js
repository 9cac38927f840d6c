// What is pointed at, in every picture at once: a block (hovered, focused by keys, or selected with its card open), a
// request or a stage (its blocks alone are unveiled), a term of a formula (its blocks get the outline).

import { GRIDS } from "./figures/figures.js";
import { isolated } from "./isolate.js";
import { reveal } from "./requests.js";

const HOVER_DELAY = 220;
const SPOT_DELAY = 90;

export class Selection {
  constructor(model, figures, card) {
    Object.assign(this, { model, figures, card });
    this.live = document.getElementById("live");
    this.selected = null; // a block
    this.request = null; // the number of the selected request
    this.hovered = null;
    this.cursors = {}; // by figure: the cell that has the focus
    for (const name of GRIDS) this.#watch(figures.hosts[name]);
    this.#watchChips();
    this.#watchSpots();
  }

  #watch(host) {
    const at = (event) => host.blockUnder(event);
    host.element.addEventListener("pointermove", (event) => this.hover(at(event), event));
    host.element.addEventListener("pointerleave", () => this.hover(null));
    host.element.addEventListener("click", (event) => {
      const block = at(event);
      if (block === null) this.close();
      else this.select(block, event);
    });
    host.element.addEventListener("focus", () => {
      if (host.element.matches(":focus-visible")) this.#focus(host, this.cursors[host.name] ?? host.boxes(this.selected ?? 1)[0] ?? host.next(null, ""));
    });
    host.element.addEventListener("blur", () => this.figures.outline("focused", null));
  }

  #watchChips() {
    const block = (event) => event.target.closest?.("[data-block]:not(.card)")?.dataset.block;
    document.addEventListener("pointerover", (event) => {
      const one = block(event);
      if (one !== undefined) this.hover(Number(one), event, true);
      else if (event.target.closest("#call-panel")) this.hover(null);
    });
    document.addEventListener("click", (event) => {
      const one = block(event);
      if (one === undefined || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const shown = this.select(Number(one), event);
      if (!event.detail) shown.then(() => this.card.focus()); // by a key
    });
  }

  /** Requests and stages unveil their blocks, terms outline theirs. */
  #watchSpots() {
    document.addEventListener("pointerover", ({ target }) => {
      const term = target.closest(".term[data-blocks]");
      if (term !== this.term) this.figures.outlineMany(term ? term.dataset.blocks.split(" ").map(Number) : null);
      this.term = term;
      const place = target.closest("[data-request], .stage.ran");
      if (place === this.place) return;
      this.place = place;
      clearTimeout(this.spotTimer);
      this.spotTimer = setTimeout(() => this.figures.draw(this.figures.setSpot(this.#spotOf(place))), SPOT_DELAY);
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a.pick");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const number = Number(link.closest("[data-request]").dataset.request);
      this.pick(this.request === number ? null : number);
    });
  }

  /** The blocks that a place on the page stands for; without one those of the selected request, or null. */
  #spotOf(place) {
    if (place?.matches(".stage")) {
      const blocks = new Set([...place.querySelectorAll("[data-block]")].map((chip) => Number(chip.dataset.block)));
      for (const term of place.querySelectorAll("[data-blocks]")) for (const one of term.dataset.blocks.split(" ")) blocks.add(Number(one));
      if (blocks.size) return blocks;
    } else if (place) {
      return this.model.blocksOf(Number(place.dataset.request));
    }
    return this.request === null ? null : this.model.blocksOf(this.request);
  }

  /** Select a request, or none. */
  pick(number) {
    this.request = number;
    if (number !== null && this.selected !== null) this.#letGo();
    this.#mark();
    this.#keep();
    this.figures.draw(this.figures.setSpot(this.#spotOf(null)));
  }

  #mark() {
    for (const row of document.querySelectorAll("[data-request]")) {
      const on = row.dataset.request === String(this.request);
      row.classList.toggle("picked", on);
      if (on) reveal(row);
      const link = row.querySelector("a.pick");
      if (on) link?.setAttribute("aria-current", "true");
      else link?.removeAttribute("aria-current");
    }
  }

  hover(block, event = null) {
    if (block === this.hovered) return;
    this.hovered = block;
    this.figures.outline("hovered", block);
    this.card.cancel();
    if (this.card.pinned) return;
    if (block === null) this.card.hide();
    else if (event?.pointerType === "mouse") this.card.later(HOVER_DELAY, `block/${block}`, event, () => this.hovered === block);
  }

  #focus(host, cell) {
    if (!cell) return;
    this.cursors[host.name] = cell;
    host.reveal(cell);
    this.figures.outline("focused", cell.block);
    this.live.textContent = this.describe(cell.block);
  }

  /** Arrow keys over the cells of the figure that has the focus; returns whether the key was for us. */
  move(element, key) {
    const host = Object.values(this.figures.hosts).find((one) => one.element === element);
    const from = this.cursors[host.name] ?? null;
    if (key === "Enter" || key === " ") {
      if (from) this.select(from.block, this.#middle(host, from)).then(() => this.card.focus());
      return true;
    }
    if (!/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(key)) return false;
    this.#focus(host, host.next(from, key));
    return true;
  }

  #middle(host, box) {
    const at = host.plot.getBoundingClientRect();
    return { clientX: at.left + box.x + box.w / 2, clientY: at.top + box.y + box.h / 2 };
  }

  select(block, event) {
    this.selected = block;
    this.figures.outline("selected", block);
    this.#keep();
    return this.card.pin(`block/${block}`, event);
  }

  /** Let go of what is selected last: the card, then the request. Returns whether there was something. */
  close() {
    if (this.card.open) {
      this.#letGo();
      this.#keep();
      return true;
    }
    if (this.request === null) return false;
    this.pick(null);
    return true;
  }

  #letGo() {
    this.selected = null;
    this.figures.outline("selected", null);
    this.card.close();
  }

  /** After a frame: the card and the marks tell of the new moment. Returns the panels to draw again. */
  refresh() {
    if (this.selected >= this.model.pool.size) this.close();
    this.card.refresh();
    if (this.request !== null && this.request >= this.model.requests.length) this.request = null;
    this.#mark();
    this.place = undefined;
    this.term = undefined;
    this.figures.outlineMany(null);
    return this.figures.setSpot(this.#spotOf(null));
  }

  /** The selection is in the URL; where a link says nothing, the page has what it selects. */
  restore() {
    this.choose(new URLSearchParams(location.search).get("sel") ?? document.body.dataset.select ?? "");
  }

  /** Select `block:3`, or `request:` with the id; "" lets go of everything. */
  choose(what) {
    const [kind, ...rest] = what.split(":");
    const name = rest.join(":");
    const block = Number(name);
    if (kind !== "block" && this.selected !== null) this.close();
    if (kind !== "request" && this.request !== null) this.pick(null);
    if (kind === "block" && /^\d+$/.test(name) && block < this.model.pool.size) {
      this.select(block, this.#middle(this.figures.hosts.pool, this.figures.hosts.pool.boxes(block)[0]));
    }
    if (kind === "request" && this.model.requests.includes(name)) this.pick(this.model.requests.indexOf(name));
  }

  #keep() {
    const { selected, request, model } = this;
    const url = new URL(location.href);
    if (selected !== null) url.searchParams.set("sel", `block:${selected}`);
    else if (request !== null) url.searchParams.set("sel", `request:${model.requests[request]}`);
    else url.searchParams.delete("sel");
    history.replaceState(history.state, "", url.href.replace("sel=block%3A", "sel=block:").replace("sel=request%3A", "sel=request:"));
  }

  describe(block) {
    const { pool, requests } = this.model;
    const kind = { null: "the null block", free: "free and empty", cached: "free, cached", held: "held" }[pool.kind(block)];
    const owners = [pool.owners[2 * block], pool.owners[2 * block + 1]].filter((n) => n >= 0).map((n) => isolated(requests[n]));
    const parts = [`Block ${block}: ${kind}${owners.length ? ` by ${owners.join(" and ")}` : ""}`];
    if (pool.kind(block) === "held" && pool.isHashed(block)) parts.push("hashed");
    if (pool.isChanged(block)) parts.push("changed in this step");
    if (pool.lostHash(block)) parts.push("it lost its hash");
    return parts.join(", ");
  }
}
