// Arrow keys belong to what has the focus: a picture's blocks, a field, a list; else to time.

import { ownsKey } from "./own-keys.js";

const TIME = { ArrowRight: "go-step", ArrowLeft: "go-back", " ": "go-step", Home: "go-first", End: "go-last" };

const CHARACTERS = { "?": "help", r: "go-run", u: "go-until", p: "play", b: "go-branches", s: "go-share", n: "tour-next", N: "tour-back" };

/** Whether keys that are characters do anything; who dictates to the computer may switch them off. */
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

const CHIPS = { ArrowRight: 1, ArrowLeft: -1 };

export function watchKeys(selection, panels) {
  watchSwitch();
  let busy = 0;
  let waiting = null;
  const press = (id) => {
    if (busy) waiting = id; // one press is remembered, not a queue of them
    else document.getElementById(id)?.click();
  };
  document.addEventListener("htmx:before:request", () => { busy += 1; });
  document.addEventListener("htmx:finally:request", () => {
    busy = Math.max(0, busy - 1);
    const next = waiting;
    waiting = null;
    if (next && !busy) setTimeout(() => press(next)); // after htmx has let go of the request
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const open = document.querySelector(":popover-open");
    if (event.key === "Escape") {
      if (open) return; // it closes by itself
      if (!selection.close() && !panels.closeProbe()) panels.leaveEnlarged();
      return;
    }
    if (ownsKey(event)) return;
    const grid = event.target.closest(".figure[tabindex]");
    if (grid) {
      if (selection.move(grid, event.key)) event.preventDefault();
      return;
    }
    const chip = event.target.closest(".chip");
    if (chip && CHIPS[event.key]) {
      event.preventDefault();
      nextChip(chip, CHIPS[event.key])?.focus();
      return;
    }
    if (CHARACTERS[event.key] && !event.repeat && characterKeys()) {
      event.preventDefault();
      document.getElementById(CHARACTERS[event.key])?.click();
      return;
    }
    const id = TIME[event.key];
    if (!id) return;
    event.preventDefault();
    press(id);
  });
}

/** The chip beside this one, in its row. */
function nextChip(chip, step) {
  const all = [...chip.closest(".chips, .slots, .card").querySelectorAll("a.chip")];
  return all[all.indexOf(chip) + step];
}
