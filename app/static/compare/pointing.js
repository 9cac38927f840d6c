// A block that is pointed at or opened is outlined in every picture of both sides; its card says what it is in either.

export class Pointing {
  constructor(models, figures, data) {
    Object.assign(this, { models, figures, data });
    this.card = document.getElementById("compare-card");
    this.live = document.getElementById("live");
    this.cursors = {};
    this.hovered = null;
    this.opened = null;
    for (const name of figures.blockHosts) this.#watch(figures.hosts[name]);
    this.card.addEventListener("click", ({ target }) => { if (target.closest(".close")) this.close(); });
  }

  #watch(host) {
    host.element.addEventListener("pointermove", (event) => this.#hover(host.blockUnder(event)));
    host.element.addEventListener("pointerleave", () => this.#hover(null));
    host.element.addEventListener("click", (event) => {
      const block = host.blockUnder(event);
      if (block === null) this.close();
      else this.open(block, event.clientX, event.clientY);
    });
    host.element.addEventListener("focus", () => {
      if (host.element.matches(":focus-visible")) this.#focus(host, this.cursors[host.name] ?? host.boxes(1)[0] ?? host.next(null, ""));
    });
    host.element.addEventListener("blur", () => this.figures.outline("focused", null));
  }

  #hover(block) {
    if (block === this.hovered) return;
    this.hovered = block;
    this.figures.outline("hovered", block);
  }

  #focus(host, cell) {
    if (!cell) return;
    this.cursors[host.name] = cell;
    this.figures.outline("focused", cell.block);
    this.live.textContent = this.describe(cell.block);
  }

  /** Arrow keys over the cells of the picture that has the focus; returns whether the key was for us. */
  move(element, key) {
    const host = Object.values(this.figures.hosts).find((one) => one.element === element);
    const from = this.cursors[host.name] ?? null;
    if (key === "Enter" || key === " ") {
      const box = host.plot.getBoundingClientRect();
      if (from) {
        this.from = element;
        this.open(from.block, box.left + from.x + from.w, box.top + from.y + from.h);
        this.card.querySelector("a")?.focus();
      }
      return true;
    }
    if (!/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(key)) return false;
    this.#focus(host, host.next(from, key));
    return true;
  }

  /** After another moment: the card tells of it. */
  refresh() {
    if (this.opened === null) return;
    if (this.models.every((model) => this.opened >= model.pool.size)) this.close();
    else this.#write(this.opened);
  }

  open(block, x, y) {
    this.opened = block;
    this.figures.outline("selected", block);
    this.#write(block);
    this.card.hidden = false;
    const { offsetWidth: w, offsetHeight: h } = this.card;
    this.card.style.left = `${Math.max(8, x + 18 + w < innerWidth ? x + 18 : x - w - 18)}px`;
    this.card.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - h - 8))}px`;
  }

  /** Returns whether something was open. */
  close() {
    if (this.opened === null) return false;
    const had = this.card.contains(document.activeElement);
    this.opened = null;
    this.card.hidden = true;
    this.figures.outline("selected", null);
    if (had) this.from?.focus();
    return true;
  }

  #write(block) {
    const base = location.pathname.split("/").at(-2);
    const lines = this.data().sides.map((side, i) => {
      const line = make("p", "");
      const link = make("a", side.name);
      link.href = `../${base}?branch=${side.branch}&at=${side.at}&sel=block:${block}`;
      link.title = "Its life, in the workspace";
      line.append(link, `: ${this.stateOf(this.models[i], block)}`);
      return line;
    });
    const close = make("button", "×", "plain close");
    close.type = "button";
    close.setAttribute("aria-label", "Close");
    const head = make("header", "");
    head.append(make("h2", `Block ${block}`), make("span", this.#differs(block) ? "differs" : "the same in both", "fact"), close);
    const card = make("div", "", "card");
    card.append(head, ...lines);
    this.card.replaceChildren(card);
  }

  #differs(block) {
    return this.models.some(({ pool }) => block < pool.size && pool.isChanged(block));
  }

  stateOf({ pool, requests }, block) {
    if (block >= pool.size) return "not in this pool";
    const kind = { null: "the null block", free: "free and empty", cached: "free, cached", held: "held" }[pool.kind(block)];
    const owners = [pool.owners[2 * block], pool.owners[2 * block + 1]].filter((n) => n >= 0).map((n) => requests[n]);
    const more = pool.refs[block] > owners.length ? ` and ${pool.refs[block] - owners.length} more` : "";
    return `${kind}${owners.length ? ` by ${owners.join(" and ")}${more}` : ""}${pool.kind(block) === "held" && pool.isHashed(block) ? ", hashed" : ""}`;
  }

  describe(block) {
    const sides = this.data().sides.map((side, i) => `${this.stateOf(this.models[i], block)} in ${side.name}`);
    return `Block ${block}: ${sides.join("; ")}; ${this.#differs(block) ? "differs" : "the same"}`;
  }
}

function make(tag, text, name = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (name) element.className = name;
  return element;
}
