// Starts the page: figures from the data in it, then every frame that htmx brings.

import { Card } from "./card.js";
import { refreshCues, watchCues } from "./cues.js";
import { Figures } from "./figures/figures.js";
import { Model } from "./figures/model.js";
import { toggleTheme } from "./figures/theme.js";
import { watchFrames } from "./frames.js";
import { watchKeys } from "./keyboard.js";
import { watchMeanings } from "./meanings.js";
import { Panels } from "./panels.js";
import { watchPictures } from "./pictures.js";
import { layOut, watchRoom } from "./requests.js";
import { Selection } from "./selection.js";
import { watchBranches } from "./branches.js";
import { watchComposer } from "./composer.js";
import { watchShare } from "./share.js";
import { watchSheet } from "./sheet.js";
import { watchTime } from "./time.js";
import { Tour } from "./tour.js";

const model = new Model();
const figures = new Figures(model);
const card = new Card();
const selection = new Selection(model, figures, card);
const panels = new Panels(figures);
const tour = new Tour(model, selection);

async function show(names) {
  const unveiled = selection.refresh();
  panels.refresh();
  await figures.draw(new Set([...names, ...unveiled]));
  tour.refresh();
  layOut();
  refreshCues();
  document.documentElement.dataset.shown = model.at; // for tests and benchmarks: this moment is painted
}

function watchPage() {
  document.getElementById("theme")?.addEventListener("click", toggleTheme);
  document.addEventListener("click", (event) => {
    if (event.target.closest(".card .close")) selection.close();
  });
}

await show(model.apply(JSON.parse(document.getElementById("figures").textContent)));
watchPage();
watchFrames(model, show);
watchKeys(selection, panels);
watchSheet();
watchMeanings();
watchTime(model);
watchBranches();
watchComposer();
watchShare();
watchPictures(figures);
watchCues();
watchRoom();
selection.restore();
// Tests and benchmarks look at the same objects as the page.
window.poolscope = { model, figures, selection, tour };
