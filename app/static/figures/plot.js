// Plotly, bare: one place for its layout and its configuration.

import { theme } from "./theme.js";

const CONFIG = { staticPlot: true, displayModeBar: false, displaylogo: false, showSendToCloud: false, responsive: false };

/** A shape without a path is an error: an empty one is a point outside. */
export const NOWHERE = "M-9,-9L-9,-9";
/** Shapes whose names begin so rise to their place after a step. */
export const LIFTED = "lifted";
const FADE = 160; // ms
const LIFT = 200; // ms
const HEIGHTS = 120; // px
const SPECIAL = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const ruler = document.createElement("canvas").getContext("2d");

/** Plotly renders a subset of HTML in every text: whatever a user wrote goes through here. */
export function escapeText(text) {
  // Control characters would end up in the SVG; a line break would make a second line.
  return String(text).replace(/[\u0000-\u001f\u007f]/g, " ").replace(/[&<>"']/g, (c) => SPECIAL[c]);
}

/** The text, cut with an ellipsis where it is wider than `width`. */
export function fitText(text, width, { size = 12, bold = false } = {}) {
  ruler.font = `${bold ? "bold " : ""}${size}px ${theme().sans}`;
  const letters = [...String(text)];
  if (letters.length < 200 && ruler.measureText(text).width <= width) return String(text);
  let end = Math.min(letters.length, 100);
  while (end > 1 && ruler.measureText(`${letters.slice(0, end).join("")}…`).width > width) end -= 1;
  return `${letters.slice(0, end).join("")}…`;
}

/** How wide a text is, in pixels. */
export function widthOf(text, size = 12) {
  ruler.font = `${size}px ${theme().sans}`;
  return Math.ceil(ruler.measureText(text).width);
}

/** One unit is one pixel, y grows downwards: what we lay out is what is drawn. */
export function pixelLayout(width, height, shapes = []) {
  // A new height has everything drawn again: it changes in large steps, and the host cuts off what is too much.
  const drawn = Math.ceil(height / HEIGHTS) * HEIGHTS;
  const axis = { visible: false, fixedrange: true, autorange: false };
  return {
    width, height: drawn, shapes, ...bare(),
    xaxis: { ...axis, range: [0, width] },
    yaxis: { ...axis, range: [drawn, 0] },
  };
}

export function bare() {
  const { sans, ink } = theme();
  return {
    margin: { l: 0, r: 0, t: 0, b: 0, pad: 0 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false, hovermode: false, dragmode: false,
    font: { family: sans, size: 12, color: ink },
  };
}

/**
 * A figure of shapes alone is drawn by Plotly once. On a step only paths differ: they are put into their elements, for to
 * have Plotly compare two whole layouts takes twenty times as long. What else changes has it drawn anew.
 */
export async function draw(element, traces, layout) {
  // The configuration is given once: to compare it again costs more than to draw.
  if (traces.length) await (element.data?.length ? window.Plotly.react(element, traces, layout) : window.Plotly.newPlot(element, traces, layout, CONFIG));
  else if (!patch(element, layout)) {
    // Plotly reads every number of a path, to put it where it is already: it gets empty ones.
    const shapes = layout.shapes.map((shape) => ({ ...shape, path: NOWHERE }));
    const drawn = window.Plotly.newPlot(element, [], { ...layout, shapes }, CONFIG);
    patch(element, layout);
    await drawn;
  }
}

/** Put new paths where the old ones were; returns whether that was all there is to do. One unit of ours is one pixel. */
function patch(element, layout) {
  const before = element.layout;
  if (!before || element.data?.length || before.width !== layout.width || before.height !== layout.height) return false;
  if (before.shapes.length !== layout.shapes.length || !before.shapes.every((shape, i) => sameLook(shape, layout.shapes[i]))) return false;
  layout.shapes.forEach(({ name, path }, i) => {
    if (before.shapes[i].path === path) return;
    before.shapes[i].path = path;
    const drawn = element.querySelector(`.shape-group[data-index="${i}"] > path`);
    drawn.setAttribute("d", path);
    if (!moves()) return;
    if (name.startsWith(LIFTED)) lift(drawn);
    else if (name === "rings") drawn.animate([{ opacity: 0 }, { opacity: 1 }], FADE);
  });
  return true;
}

/** Rise from the row below, as a block does that leaves the queue. */
export function lift(element) {
  element.animate([{ transform: "translateY(12px)", opacity: 0 }, { transform: "none", opacity: 1 }], { duration: LIFT, easing: "ease-out" });
}

/** Only after a single step, and where nobody asked for stillness. */
export function moves() {
  return document.body.classList.contains("stepped") && !matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function sameLook(a, b) {
  return a.name === b.name && a.fillcolor === b.fillcolor && a.line.color === b.line.color && a.line.width === b.line.width && a.line.dash === b.line.dash;
}
