// Starts a comparison: pictures from the data in the page, then every moment that htmx brings.

import { Figures } from "./compare/figures.js";
import { watchKeys, watchSlider } from "./compare/keys.js";
import { Pointing } from "./compare/pointing.js";
import { Model } from "./figures/model.js";
import "./theme-button.js";
import { watchSheet } from "./sheet.js";

const models = [new Model(), new Model()];
const figures = new Figures(models);
const pointing = new Pointing(models, figures, () => figures.data);
const slide = watchSlider(() => figures.data.at);

async function show() {
  const script = document.getElementById("comparison-data");
  if (script.dataset.taken) return;
  script.dataset.taken = "yes";
  const data = JSON.parse(script.textContent);
  const settled = figures.show(data);
  pointing.refresh();
  slide(data.at, document.getElementById("compare-where").textContent);
  await settled;
  document.documentElement.dataset.shown = data.at; // for tests: this moment is painted
}

/** The address says which moment it is, on both sides. */
function keepAddress() {
  const query = new URLSearchParams(location.search);
  query.set("at", figures.data.at);
  history.replaceState(null, "", `${location.pathname}?${query}`);
}

document.addEventListener("htmx:after:swap", async () => {
  await show();
  keepAddress();
});
watchKeys(pointing);
watchSheet();
await show();
// Tests look at the same objects as the page.
window.poolscope = { models, figures };
