// Plotly, bare: one place for its layout and its configuration.

import { theme } from "./theme.js";

const CONFIG = { staticPlot: true, displayModeBar: false, displaylogo: false, showSendToCloud: false, responsive: false };

const HEIGHTS = 120; // px
const ruler = document.createElement("canvas").getContext("2d");

/** The text, cut with an ellipsis where it is wider than `width`. */
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

/** The configuration is given once: to compare it again costs more than to draw. */
export function draw(element, traces, layout) {
  if (element.data) return window.Plotly.react(element, traces, layout);
  return window.Plotly.newPlot(element, traces, layout, CONFIG);
}
