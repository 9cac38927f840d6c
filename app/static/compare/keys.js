// Keys and the slider of a comparison: one moment for both sides.

import { ownsKey } from "../own-keys.js";

const TIME = { ArrowRight: "go-step", ArrowLeft: "go-back", " ": "go-step", Home: "go-first", End: "go-last" };
const CHARACTERS = { "?": "help", n: "go-next" };

function characterKeys() {
  try { return localStorage.getItem("character-keys") !== "off"; } catch { return true; }
}

function watchSwitch() {
  const box = document.getElementById("character-keys");
  box.checked = characterKeys();
  box.addEventListener("change", () => {
    try { localStorage.setItem("character-keys", box.checked ? "on" : "off"); } catch { /* for this page only */ }
  });
}

export function watchKeys(pointing) {
  watchSwitch();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      pointing.close();
      return;
    }
    if (ownsKey(event)) return;
    const grid = event.target.closest(".figure[tabindex]");
    if (grid) {
      if (pointing.move(grid, event.key)) event.preventDefault();
      return;
    }
    const id = CHARACTERS[event.key] && !event.repeat && characterKeys() ? CHARACTERS[event.key] : TIME[event.key];
    if (!id) return;
    const control = document.getElementById(id);
    if (!control || control.matches("a:not([href])")) return;
    event.preventDefault();
    control.click();
  });
}

/** Go where the slider is; while one moment is on its way only the latest place is remembered. */
export function watchSlider(shown) {
  const slider = document.getElementById("compare-scrub");
  let asking = false;
  const follow = async () => {
    if (asking) return;
    asking = true;
    while (Number(slider.value) !== shown()) {
      const query = new URLSearchParams(location.search);
      const to = slider.value;
      query.set("at", to);
      await window.htmx.ajax("GET", `compare?${query}`, { target: "#comparison", swap: "none" });
      if (Number(to) !== shown()) break; // it was refused
    }
    asking = false;
  };
  slider.addEventListener("input", follow);
  return (at, words) => {
    if (!asking) slider.value = at;
    slider.setAttribute("aria-valuetext", words);
  };
}
