// What the words of a call mean, where they stand. The page has each sentence once, in the sheet; frames name the words.

const opened = new Set(); // stages: they stay open from step to step
let asked = null; // for its words by the reader, and not by a step

export function watchMeanings() {
  const panel = document.getElementById("call-panel");
  panel.addEventListener("click", ({ target }) => {
    const place = target.closest("details.opens");
    if (place && target.closest("summary")) ask(place);
    else if (target.closest(".term")) show(target.closest(".stage").querySelector("details.opens"));
  });
  panel.addEventListener("toggle", ({ target }) => {
    if (!target.matches("details.opens") || !target.isConnected) return;
    if (target.open) opened.add(target.dataset.told);
    else opened.delete(target.dataset.told);
    if (target.open && target === asked) target.querySelector(".meanings").scrollIntoView({ block: "nearest" });
    asked = null;
  }, true);
  document.addEventListener("htmx:after:swap", reopen);
}

/** After a step: as it was before. */
function reopen() {
  for (const name of opened) {
    for (const place of document.querySelectorAll(`#call-panel [data-told="${name}"]:not([open])`)) {
      fill(place);
      place.open = true;
    }
  }
}

/** A term's number was pressed: its stage tells its words, or no more. */
function show(place) {
  ask(place);
  place.open = !place.open;
}

function ask(place) {
  fill(place);
  asked = place;
}

function fill(place) {
  const list = place.querySelector(".meanings");
  if (list.children.length) return;
  for (const key of list.dataset.meanings.split(" ")) {
    list.append(document.querySelector(`#keys [data-meaning="${key}"]`).cloneNode(true));
  }
}
