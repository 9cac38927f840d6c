// A figure as a picture of its own: Plotly's SVG and the ids and notes over it as one document, on the page's ground,
// under its name, the moment, and the sentence that says what is to be seen.

import { bare } from "./plot.js";
import { theme } from "./theme.js";
import { WordsLayer } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const PAD = 20;
const NARROWEST = 360;
const LINE = 17;
const EDGE = 2;
const LEGEND_GAP = 14;
const SCALE = 2;
const MOST_PIXELS = 250e6;
const LONGEST = 32_000; // px: no browser draws more
const COPIED = ["fill", "font-family", "font-size", "font-weight", "font-variant-numeric", "font-variant-ligatures", "text-anchor", "text-decoration-line", "unicode-bidi"];
const ruler = document.createElement("canvas").getContext("2d");

/**
 * The SVG text of `figure` as it was built for `host`, with `legend`, another figure, beneath it. `head` names it,
 * `moment` says of what and when, `told` is its sentence. What a user wrote is text, never markup.
 */
export async function pictureOf(figure, host, { head, moment, told, legend = null }) {
  const t = theme();
  const { layout: { width } } = figure;
  const below = figure.height + (legend ? LEGEND_GAP : 0);
  const height = below + (legend?.height ?? 0);
  const wide = Math.max(width, NARROWEST) + 2 * PAD;
  const lines = wrapped(told, wide - 2 * PAD, t);
  const top = PAD + 20 + lines.length * LINE + 12;
  const root = make("svg", { xmlns: SVG, width: wide, height: Math.ceil(top + height + PAD), role: "img" });
  root.setAttribute("viewBox", `0 0 ${wide} ${root.getAttribute("height")}`);
  root.append(make("title", {}, `${head}, ${moment}`), make("desc", {}, told), make("rect", { width: "100%", height: "100%", fill: t.page }));
  root.append(headLine(head, moment, wide, t));
  lines.forEach((text, i) => root.append(write(text, { x: PAD, y: PAD + 31 + i * LINE, fill: t.ink2, size: 12 }, t)));
  for (const [part, y] of legend ? [[figure, top], [legend, top + below]] : [[figure, top]]) {
    const place = make("g", { transform: `translate(${PAD} ${y})` });
    place.append(await plotOf(part), wordsOf(part, host));
    root.append(place);
  }
  return new XMLSerializer().serializeToString(root);
}

/** A PNG of an SVG text, two pixels a unit or more where the screen has more. */
export async function pngOf(svg) {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const { naturalWidth: w, naturalHeight: h } = image;
    const scale = Math.min(Math.max(SCALE, Math.ceil(devicePixelRatio)), LONGEST / Math.max(w, h), Math.sqrt(MOST_PIXELS / (w * h)));
    const canvas = Object.assign(document.createElement("canvas"), { width: Math.round(w * scale), height: Math.round(h * scale) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png");
    });
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** What Plotly draws of the figure, cut off where the figure ends; a ring at its edge is whole. */
async function plotOf({ traces, layout, height }) {
  const { width, height: drawn } = layout;
  const text = await window.Plotly.toImage({ data: traces, layout: { ...layout, ...bare() }, config: { staticPlot: true } }, { format: "svg", width, height: drawn, imageDataOnly: true });
  const plot = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  const [wide, high] = [width + 2 * EDGE, height + 2 * EDGE];
  const frame = { x: -EDGE, y: -EDGE, width: wide, height: high, viewBox: `${-EDGE} ${-EDGE} ${wide} ${high}`, overflow: "hidden" };
  for (const [name, value] of Object.entries(frame)) plot.setAttribute(name, value);
  for (const shape of plot.querySelectorAll(".shapelayer [clip-path]")) shape.removeAttribute("clip-path");
  plot.removeAttribute("style");
  return plot;
}

/** The ids and notes with the look that the page's styles give them. */
function wordsOf({ words = [], layout, height }, host) {
  const layer = new WordsLayer(host.element);
  layer.draw(words, layout.width, height);
  const looks = new Map();
  const nodes = [...layer.svg.querySelectorAll("text, tspan")];
  const styles = nodes.map((node) => {
    const kind = [node.tagName, node.getAttribute("class"), node.parentNode.getAttribute("class"), node.style.fontSize].join();
    if (!looks.has(kind)) looks.set(kind, lookOf(node));
    return looks.get(kind);
  });
  layer.svg.remove();
  nodes.forEach((node, i) => {
    node.setAttribute("style", styles[i]);
    node.removeAttribute("class");
  });
  const group = make("g", {});
  group.append(...layer.svg.querySelectorAll(":scope > text"));
  return group;
}

function lookOf(node) {
  const style = getComputedStyle(node);
  return COPIED.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";");
}

function headLine(head, moment, wide, t) {
  const line = write("", { x: PAD, y: PAD + 11, fill: t.ink, size: 14, weight: 600 }, t);
  line.textContent = head;
  ruler.font = `600 14px ${t.sans}`;
  const from = ruler.measureText(head).width + 12;
  const about = write(fitted(moment, wide - 2 * PAD - from, `12px ${t.sans}`), { x: PAD + from, y: PAD + 11, fill: t.ink3, size: 12 }, t);
  const both = make("g", {});
  both.append(line, about);
  return both;
}

function fitted(text, width, font) {
  ruler.font = font;
  const letters = [...text];
  if (ruler.measureText(text).width <= width) return text;
  while (letters.length > 1 && ruler.measureText(`${letters.join("")}…`).width > width) letters.pop();
  return `${letters.join("")}…`;
}

/** The words in lines of this width. */
function wrapped(text, width, t) {
  ruler.font = `12px ${t.sans}`;
  const lines = [];
  for (const word of (text ?? "").split(" ").filter(Boolean)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && ruler.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(fitted(word, width, ruler.font));
  }
  return lines;
}

function write(text, { x, y, fill, size, weight = 400 }, t) {
  return make("text", { x, y, style: `fill:${fill};font-family:${t.sans};font-size:${size}px;font-weight:${weight};unicode-bidi:isolate` }, text);
}

function make(tag, attributes, text = null) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (name !== "xmlns") element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}
