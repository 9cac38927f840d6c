// What a server would answer, from what the file holds: the frame of a moment, a call, the card of a block.

import { Model } from "../figures/model.js";
import { Cards } from "./cards.js";

const EVERY = 32; // moments: a model is kept, to go back from
const CALL = /<hx-partial hx-target="#call"[^>]*>([^]*?)<\/hx-partial>/;
const FIGURES = /(<script type="application\/json" id="figures">)([^]*?)(<\/script>)/;

export class Recording {
  /** `held` is what the server wrote: `first`, `frames`, `calls` and `cards`; `frames[0]` is that of the moment `first`. */
  constructor(held) {
    this.first = held.first;
    this.last = held.first + held.frames.length - 1;
    this.held = held;
    this.kept = new Map(); // models by moment
    this.cards = new Cards(held.cards, held.first);
    this.latest = this.#begin();
    this.keep(this.latest);
  }

  /** The answer to what htmx asks for; null where the file has none. */
  answer(url) {
    const { pathname, searchParams } = new URL(url, document.baseURI);
    const at = this.#inside(number(searchParams, "at") ?? this.first);
    const block = pathname.match(/\/block\/(\d+)$/);
    if (block) return this.cards.card(Number(block[1]), this.modelAt(at));
    if (pathname.endsWith("/frame")) return this.frame(at, number(searchParams, "from"));
    if (pathname.endsWith("/call")) return this.call(at, number(searchParams, "call"));
    return null;
  }

  /** A call of the step that led to a moment: of many the frame tells one, the others stand beside. */
  call(at, index) {
    const told = this.held.frames[at - this.first].match(CALL)[1];
    if (told.includes(`id="call-${index}"`)) return told;
    const beside = this.held.calls[at]?.[index];
    return beside ? chosen(told, index, beside) : null;
  }

  #inside(at) {
    return Math.min(Math.max(at, this.first), this.last);
  }

  /** As it was sent live where it is a change on top of the moment `from`; else with the whole of the figures' data. */
  frame(at, from) {
    const text = this.held.frames[at - this.first];
    if (at === this.first || from === at - 1) return text;
    const data = JSON.stringify(this.modelAt(at).whole()).replaceAll("<", "\\u003c");
    return text.replace(FIGURES, (_, open, told, close) => `${open}${data}${close}`);
  }

  /** The figures' data at a moment: the changes in order on top of the nearest moment before it that is kept. */
  modelAt(at) {
    let model = this.latest;
    if (model.at > at || at - model.at > EVERY) {
      const near = Math.max(...[...this.kept.keys()].filter((moment) => moment <= at));
      if (model.at > at || near > model.at) model = this.kept.get(near).copy();
    }
    while (model.at < at) {
      model.apply(this.#data(model.at + 1));
      this.keep(model);
    }
    this.latest = model;
    return model;
  }

  keep(model) {
    if ((model.at - this.first) % EVERY === 0 && !this.kept.has(model.at)) this.kept.set(model.at, model.copy());
  }

  #begin() {
    const model = new Model();
    model.apply(this.#data(this.first));
    return model;
  }

  #data(at) {
    return JSON.parse(this.held.frames[at - this.first].match(FIGURES)[2]);
  }
}

/** The calls of a step with another one told. */
function chosen(told, index, beside) {
  const place = document.createElement("template");
  place.innerHTML = told;
  const { content } = place;
  for (const call of content.querySelectorAll("article.call")) call.remove();
  for (const option of content.querySelectorAll("#call-menu option")) option.toggleAttribute("selected", option.value === String(index));
  for (const tab of content.querySelectorAll("[data-call]")) {
    if (tab.dataset.call === String(index)) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
  return place.innerHTML + beside;
}

function number(query, name) {
  const text = query.get(name);
  return /^\d+$/.test(text ?? "") ? Number(text) : null;
}

/** What the file holds: JSON, raw deflate, base64. */
export async function unpack(text) {
  const packed = await fetch(`data:application/octet-stream;base64,${text.trim()}`);
  return JSON.parse(await new Response(packed.body.pipeThrough(new DecompressionStream("deflate-raw"))).text());
}
