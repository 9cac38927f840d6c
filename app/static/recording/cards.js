// The card of a block at any moment of a recording, in the shape of the server's. What a user wrote is text, never markup.

const MOST_EVENTS = 100;

export class Cards {
  /**
   * `held`: `names` of the requests by number; `free`: the queue at the moment `first`; `moves`: what left and entered it
   * in each action behind that; `blocks` and `changes`: what a card says of a block, at first and from each action on;
   * `lives`: the events of each block, and `earlier`, how many before them are left out.
   */
  constructor(held, first) {
    Object.assign(this, { held, first, queue: new Places(held.free, held.moves, first) });
    this.facts = new Map(); // by block: [moment, fact], in order
    this.#learn(held.blocks, first);
    held.changes.forEach((facts, i) => this.#learn(facts, first + 1 + i));
  }

  #learn(facts, at) {
    for (const [block, ...fact] of facts) {
      if (!this.facts.has(block)) this.facts.set(block, []);
      this.facts.get(block).push([at, fact]);
    }
  }

  /** The HTML of a card; null where the pool has no such block. */
  card(block, { at, branch, pool }) {
    if (block >= pool.size) return null;
    const untold = block === 0 ? ["null", 0, [], []] : ["free and empty", 0, [], []];
    const [state, refs, owners, hashes] = this.facts.get(block)?.findLast(([moment]) => moment <= at)?.[1] ?? untold;
    const place = this.queue.place(block, at);
    const lines = [
      ...owners.map(([number, entry], i) => line(i ? "" : "held by", this.#owner(number), `, ${entry}`)),
      ...(place ? [line("free queue", place)] : []),
      ...hashes.flatMap(([hash, parent, words], i) => [
        line(i ? "" : "hash", make("code", {}, hash), `, ${words}`),
        ...(parent ? [line("parent", make("code", {}, parent))] : []),
      ]),
    ];
    return make("article", { class: "card", "data-block": block, "aria-label": `Block ${block}` },
      make("header", {}, make("h2", {}, `Block ${block}`), make("span", { class: "fact" }, `${state}, ref_cnt ${refs}`),
        make("button", { class: "plain close js-only", type: "button", "aria-label": "Close" }, "×")),
      make("dl", {}, ...lines.flat()),
      ...this.#life(block, at, branch)).outerHTML;
  }

  #owner(number) {
    const swatch = make("i", { class: `swatch hue-${(number % 8) + 1}`, "aria-hidden": "true" });
    return [swatch, make("b", { class: "name" }, this.held.names[number])];
  }

  #life(block, at, branch) {
    const events = (this.held.lives[block] ?? []).filter(([moment]) => moment <= at);
    const shown = events.slice(-MOST_EVENTS);
    const before = (this.held.earlier[block] ?? 0) + events.length - shown.length;
    if (!shown.length) return [make("p", { class: "fact" }, "Nothing has happened to it yet.")];
    return [
      make("h3", {}, "Its life"),
      ...(before ? [make("p", { class: "fact" }, `${before} earlier events are not listed.`)] : []),
      make("ol", { class: "life", tabindex: 0, "aria-label": `Life of block ${block}` },
        ...shown.map(([moment, ...words]) => make("li", moment === at ? { class: "now" } : {},
          this.#moment(moment, at, branch), make("span", {}, ...this.#words(words))))),
    ];
  }

  #moment(moment, at, branch) {
    const { steps } = this.held;
    const words = steps[moment] > steps[moment - 1] ? `step ${steps[moment]}` : `action ${moment}`;
    if (moment < this.first) return make("span", { class: "outside", title: "Before this recording" }, words);
    const query = `?branch=${encodeURIComponent(branch)}&at=${moment}`;
    return make("a", { href: query, "hx-get": `frame${query}&from=${at}`, "hx-swap": "none", "hx-sync": "#transport:drop" }, words);
  }

  #words(pieces) {
    return pieces.map((piece) => (typeof piece === "number" ? make("b", { class: "name" }, this.held.names[piece]) : piece));
  }
}

/** The free queue's order at any moment: what enters at the front gets ever smaller ranks, at the back ever larger ones. */
class Places {
  constructor(free, moves, first) {
    Object.assign(this, { free, moves, first });
    this.#rewind();
  }

  #rewind() {
    this.at = this.first;
    this.ranks = new Map(this.free.map((block, i) => [block, i]));
    [this.front, this.back] = [-1, this.free.length];
  }

  /** In words, as on the server's card; "" for a block that is not free. */
  place(block, at) {
    if (at < this.at) this.#rewind();
    for (; this.at < at; this.at += 1) for (const move of this.moves[this.at - this.first]) this.#apply(move);
    const rank = this.ranks.get(block);
    if (rank === undefined) return "";
    let before = 0;
    for (const other of this.ranks.values()) if (other < rank) before += 1;
    return before ? `${before} of ${this.ranks.size} go before it` : `first of ${this.ranks.size}: handed out next`;
  }

  #apply([what, blocks]) {
    if (what === "out") for (const block of blocks) this.ranks.delete(block);
    if (what === "front") for (const block of blocks.toReversed()) this.ranks.set(block, this.front--);
    if (what === "back") for (const block of blocks) this.ranks.set(block, this.back++);
  }
}

function line(term, ...words) {
  return [make("dt", {}, term), make("dd", {}, ...words.flat())];
}

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
