// Starts the page: figures from the data in it, then every frame that htmx brings.

import { Figures } from "./figures/figures.js";
import { Model } from "./figures/model.js";
import { toggleTheme } from "./figures/theme.js";
import { watchFrames } from "./frames.js";
import { watchKeys } from "./keyboard.js";
import { Selection } from "./selection.js";
import { watchBranches } from "./branches.js";
import { watchTime } from "./time.js";

const model = new Model();
const figures = new Figures(model);
const selection = new Selection(model, figures);

async function show(names) {
  selection.refresh();
  await figures.draw(names);
  document.documentElement.dataset.shown = model.at; // for tests and benchmarks: this moment is painted
}

function chooseCall(index) {
  for (const article of document.querySelectorAll("#call article.call")) {
    article.classList.toggle("chosen", article.id === `call-${index}`);
  }
  for (const tab of document.querySelectorAll("#call [data-call]")) {
    if (tab.dataset.call === String(index)) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
}

function watchPanels() {
  document.getElementById("call").addEventListener("click", (event) => {
    const tab = event.target.closest("[data-call]");
    if (!tab) return;
    event.preventDefault();
    chooseCall(tab.dataset.call);
  });
  document.getElementById("call").addEventListener("change", (event) => {
    if (event.target.id === "call-menu") chooseCall(event.target.value);
  });
  document.getElementById("theme").addEventListener("click", toggleTheme);
  const keys = document.getElementById("keys");
  document.getElementById("help").addEventListener("click", () => keys.showModal());
  for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", () => figures.draw([]));
}

model.apply(JSON.parse(document.getElementById("figures").textContent));
await show(new Set(["pool", "queue", "tables", "hashes", "usage"]));
watchPanels();
watchFrames(model, show);
watchKeys(selection);
watchTime(model);
watchBranches();
selection.restore();
// Tests and the panels issue's tools look at the same objects as the page.
window.poolscope = { model, figures, selection };
