// The ids and notes of a figure, as one SVG over it. As a text trace they were three quarters of a step: here only those
// that differ from the moment before are touched. What a user wrote is text, never markup.

import { lift, moves } from "./plot.js";

const SVG = "http://www.w3.org/2000/svg";

/** Texts at points. `tone` names a colour of the theme, "h3" the text colour of hue 3; `pieces` are [text, bold]. */
export class Words {
  list = [];

  add(x, y, pieces, { tone, anchor = "start", size, mono = false, underlined = false, ring = false }) {
    this.list.push({ x, y, pieces, tone, anchor, size, mono, underlined, ring });
  }
}

export class WordsLayer {
  #drawn = [];
  #nodes = [];

  constructor(parent) {
    this.svg = parent.appendChild(document.createElementNS(SVG, "svg"));
    this.svg.setAttribute("class", "words");
    this.svg.setAttribute("aria-hidden", "true");
  }

  draw(list, width, height) {
    if (this.width !== width || this.height !== height) {
      Object.assign(this, { width, height });
      this.svg.setAttribute("width", width);
      this.svg.setAttribute("height", height);
    }
    list.forEach((word, i) => this.#put(i, word));
    for (const node of this.#nodes.splice(list.length)) node.remove();
    this.#drawn = list;
  }

  #put(i, word) {
    const before = this.#drawn[i];
    const node = this.#nodes[i] ?? this.#make();
    if (!before || before.x !== word.x) node.setAttribute("x", word.x);
    if (!before || before.y !== word.y) node.setAttribute("y", word.y + word.size * 0.35);
    const look = lookOf(word);
    if (!before || lookOf(before) !== look) node.setAttribute("class", look);
    if (!before || before.size !== word.size) node.style.fontSize = `${word.size}px`;
    if (before && textOf(before) === textOf(word)) return;
    write(node, word.pieces);
    if (word.lifted && moves()) lift(node);
  }

  #make() {
    const node = this.svg.appendChild(document.createElementNS(SVG, "text"));
    this.#nodes.push(node);
    return node;
  }
}

function lookOf({ tone, anchor, mono, underlined }) {
  return `t-${tone} ${anchor}${mono ? " mono" : ""}${underlined ? " underlined" : ""}`;
}

function textOf({ pieces }) {
  return pieces.map(([text, bold]) => `${bold ? "\u0001" : "\u0002"}${text}`).join("");
}

function write(node, pieces) {
  if (pieces.length === 1 && !pieces[0][1]) {
    node.textContent = pieces[0][0];
    return;
  }
  node.replaceChildren(...pieces.map(([text, bold]) => {
    const span = document.createElementNS(SVG, "tspan");
    if (bold) span.setAttribute("class", "bold");
    span.textContent = text;
    return span;
  }));
}
