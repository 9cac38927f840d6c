// Plotly, bare: one place for its layout, its configuration, and the escaping of its texts.

import { theme } from "./theme.js";

const CONFIG = { staticPlot: true, displayModeBar: false, displaylogo: false, showSendToCloud: false, responsive: false };
const SPECIAL = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Plotly renders a subset of HTML in every text: whatever a user wrote goes through here. */
export function escapeText(text) {
  // Control characters would end up in the SVG; a line break would make a second line.
  return String(text).replace(/[\u0000-\u001f\u007f]/g, " ").replace(/[&<>"']/g, (c) => SPECIAL[c]);
}

const ruler = document.createElement("canvas").getContext("2d");

/** The text, cut with an ellipsis where it is wider than `width`; not escaped yet. */
export function fitText(text, width, { size = 12, bold = false } = {}) {
  ruler.font = `${bold ? "bold " : ""}${size}px ${theme().sans}`;
  const letters = [...String(text)];
  if (letters.length < 200 && ruler.measureText(text).width <= width) return String(text);
  let end = Math.min(letters.length, 100);
  while (end > 1 && ruler.measureText(`${letters.slice(0, end).join("")}…`).width > width) end -= 1;
  return `${letters.slice(0, end).join("")}…`;
}

/** One unit is one pixel, y grows downwards: what we lay out is what is drawn. */
export function pixelLayout(width, height, shapes = []) {
  const axis = { visible: false, fixedrange: true, autorange: false };
  return {
    width, height, shapes, ...bare(),
    xaxis: { ...axis, range: [0, width] },
    yaxis: { ...axis, range: [height, 0] },
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

export function draw(element, traces, layout) {
  return window.Plotly.react(element, traces, layout, CONFIG);
}
