// One block is pointed at in every picture: hovered, focused by keys, or selected with its card open.

const HOVER_DELAY = 220;

export class Selection {
  constructor(model, figures) {
    this.model = model;
    this.figures = figures;
    this.card = document.getElementById("card");
    this.live = document.getElementById("live");
    this.selected = null;
    this.focused = null;
    this.hovered = null;
    for (const name of ["pool", "queue", "tables", "hashes"]) this.#watch(figures.hosts[name]);
    this.#watchChips();
    document.addEventListener("click", (event) => {
      if (event.target.closest(".close")) this.close();
    });
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
    if (host.name !== "pool") return;
    host.element.addEventListener("focus", () => host.element.matches(":focus-visible") && this.focus(this.focused ?? this.selected ?? 1));
    host.element.addEventListener("blur", () => this.figures.outline("focused", null));
  }

  #watchChips() {
    const block = (event) => event.target.closest?.("[data-block]:not(.card)")?.dataset.block;
    document.addEventListener("pointerover", (event) => {
      const one = block(event);
      if (one !== undefined) this.hover(Number(one), event, true);
      else if (event.target.closest("#call")) this.hover(null);
    });
    document.addEventListener("click", (event) => {
      const one = block(event);
      if (one === undefined || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.select(Number(one), event);
    });
  }

  hover(block, event = null) {
    if (block === this.hovered) return;
    this.hovered = block;
    this.figures.outline("hovered", block);
    clearTimeout(this.timer);
    if (this.selected !== null) return; // a pinned card stays
    if (block === null) this.#hide();
    else if (event?.pointerType === "mouse") this.timer = setTimeout(() => this.#load(block, event), HOVER_DELAY);
  }

  focus(block) {
    this.focused = block;
    this.figures.outline("focused", block);
    this.live.textContent = this.describe(block);
  }

  /** Arrow keys over the pool's blocks; returns whether the key was for us. */
  move(key) {
    const { grid } = this.figures;
    const { size } = this.model.pool;
    const from = this.focused ?? 1;
    const to = {
      ArrowRight: from + 1, ArrowLeft: from - 1, ArrowDown: from + grid.columns, ArrowUp: from - grid.columns,
      Home: 0, End: size - 1,
    }[key];
    if (key === "Enter" || key === " ") this.select(from, this.#middle(from));
    else if (to === undefined) return false;
    else if (to >= 0 && to < size) this.focus(to);
    return true;
  }

  #middle(block) {
    const host = this.figures.hosts.pool;
    const [box] = host.boxes(block);
    const at = host.plot.getBoundingClientRect();
    return { clientX: at.left + box.x + box.w / 2, clientY: at.top + box.y + box.h / 2 };
  }

  select(block, event) {
    this.selected = block;
    clearTimeout(this.timer);
    this.figures.outline("selected", block);
    this.#keep(block);
    return this.#load(block, event);
  }

  close() {
    if (this.selected === null && this.card.hidden) return;
    this.selected = null;
    clearTimeout(this.timer);
    this.figures.outline("selected", null);
    this.#keep(null);
    this.#hide();
  }

  /** After a frame: the card tells of the new moment. */
  refresh() {
    if (this.selected !== null) this.#load(this.selected, null);
    else this.#hide();
    if (this.selected >= this.model.pool.size) this.close();
  }

  /** The selection is in the URL. */
  restore() {
    const [kind, number] = (new URLSearchParams(location.search).get("sel") ?? "").split(":");
    const block = Number(number);
    if (kind === "block" && Number.isInteger(block) && block >= 0 && block < this.model.pool.size) {
      this.select(block, this.#middle(block));
    }
  }

  #keep(block) {
    const url = new URL(location.href);
    if (block === null) url.searchParams.delete("sel");
    else url.searchParams.set("sel", `block:${block}`);
    history.replaceState(history.state, "", url.href.replace("%3A", ":"));
  }

  async #load(block, event) {
    const { base, query } = document.querySelector("#transport .buttons").dataset;
    await window.htmx.ajax("GET", `${base}block/${block}${query}`, { target: "#card", swap: "innerHTML" });
    if (this.selected !== block && this.hovered !== block) return;
    // An error page is no card; frames.js has told what was wrong.
    this.card.hidden = this.card.querySelector(".card")?.dataset.block !== String(block);
    if (event) this.#place(event.clientX, event.clientY);
  }

  /** Beside the pointer, inside the window. */
  #place(x, y) {
    const { offsetWidth: w, offsetHeight: h } = this.card;
    const right = x + 22 + w < innerWidth ? x + 22 : Math.max(8, x - w - 22);
    this.card.style.left = `${right}px`;
    this.card.style.top = `${Math.max(8, Math.min(y + 18, innerHeight - h - 8))}px`;
  }

  #hide() {
    this.card.hidden = true;
  }

  describe(block) {
    const { pool, requests } = this.model;
    const kind = { null: "the null block", free: "free and empty", cached: "free, cached", held: "held" }[pool.kind(block)];
    const owners = [pool.owners[2 * block], pool.owners[2 * block + 1]].filter((n) => n >= 0).map((n) => requests[n]);
    const parts = [`Block ${block}: ${kind}${owners.length ? ` by ${owners.join(" and ")}` : ""}`];
    if (pool.kind(block) === "held" && pool.isHashed(block)) parts.push("hashed");
    if (pool.isChanged(block)) parts.push("changed in this step");
    return parts.join(", ");
  }
}
