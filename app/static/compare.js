// The comparison: its plot, its keys, and its address.

import { bare, draw, escapeText } from "./figures/plot.js";
import { onThemeChange, theme } from "./figures/theme.js";

const KEYS = { ArrowRight: "go-step", ArrowLeft: "go-back", " ": "go-step", Home: "go-first", End: "go-last" };
const LAYERS = [["usage", "y", "usage"], ["running", "y2", "running"], ["waiting", "y3", "waiting"]];

function axis(title, domain, t, more = {}) {
  return { title: { text: title, font: { size: 11, color: t.ink3 } }, domain, showgrid: false, zeroline: false, fixedrange: true,
    tickfont: { size: 11, color: t.ink3 }, linecolor: t.line, showline: true, nticks: 4, rangemode: "tozero", ...more };
}

async function plot() {
  const element = document.getElementById("series-plot");
  const { at, sides } = JSON.parse(document.getElementById("series").textContent);
  const t = theme();
  const traces = sides.flatMap((side, i) => LAYERS.map(([name, yaxis]) => ({
    type: "scatter", mode: "lines", name: `${escapeText(side.name)} ${name}`, x: side[name].at, y: side[name].y, yaxis,
    line: { color: i ? t.ink3 : t.ink, width: i ? 2 : 1.5, dash: i ? "dash" : "solid", shape: "hv" },
  })));
  const layout = {
    ...bare(), width: element.clientWidth, height: element.clientHeight, margin: { l: 48, r: 8, t: 6, b: 26, pad: 0 },
    xaxis: axis("", [0, 1], t, { anchor: "y3", tickformat: "d" }),
    yaxis: axis("usage", [0.62, 1], t, { range: [0, 1.02] }),
    yaxis2: axis("running", [0.32, 0.56], t),
    yaxis3: axis("waiting", [0, 0.26], t),
    shapes: [{ type: "line", xref: "x", yref: "paper", x0: at, x1: at, y0: 0, y1: 1, line: { color: t.accent, width: 2 } }],
  };
  await draw(element, traces, layout);
  document.documentElement.dataset.shown = at;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  if (event.key === " " && event.target.closest("a, button")) return;
  const link = document.getElementById(KEYS[event.key]);
  if (!link?.hasAttribute("href")) return;
  event.preventDefault();
  link.click();
});

document.addEventListener("htmx:after:swap", async () => {
  const main = document.getElementById("comparison");
  const query = new URLSearchParams(location.search);
  query.set("at", main.dataset.at);
  history.replaceState(null, "", `${location.pathname}?${query}`);
  await plot();
});

onThemeChange(plot);
addEventListener("resize", plot);
await plot();
