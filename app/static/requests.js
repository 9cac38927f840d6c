// The lists of requests: cards where all of them fit, rows of one line where they don't; and what matters is in view.

const ROOMY = matchMedia("(min-width: 1280px)");
const MOST_CARDS = 12; // more never fit: they are not measured
const EDGE = 30; // px: as wide as the fade at the edge of a list that goes on

let counted = 0; // the rows that were laid out last

/** After a frame, or where the room has changed. */
export function layOut() {
  const lists = document.getElementById("requests");
  const rows = lists.querySelectorAll(".row");
  const kept = rows.length === counted && lists.classList.contains("tight"); // so that a list doesn't change to and fro
  counted = rows.length;
  if (ROOMY.matches && !kept) lists.classList.toggle("tight", rows.length > MOST_CARDS || !fits(lists, rows));
  reveal(lists.querySelector(".row.picked") ?? lists.querySelector(".row:has(.tag)"));
}

/** Whether all rows are seen as cards. Those that finished stand below them for one step only: they don't count. */
function fits(lists, rows) {
  lists.classList.remove("tight");
  const last = rows[rows.length - 1];
  return !last || placeIn(lists, last).bottom <= lists.clientHeight;
}

/** Where a row is, from the top of what the lists hold. */
function placeIn(lists, row) {
  const top = row.getBoundingClientRect().top - lists.getBoundingClientRect().top - lists.clientTop + lists.scrollTop;
  return { top, bottom: top + row.offsetHeight };
}

/** Scroll the lists, and never the page, until the row is seen. */
export function reveal(row) {
  const lists = row?.closest("#requests");
  if (!lists) return;
  const { top, bottom } = placeIn(lists, row);
  if (top < lists.scrollTop) lists.scrollTop = top - EDGE;
  else if (bottom > lists.scrollTop + lists.clientHeight) lists.scrollTop = bottom - lists.clientHeight + EDGE;
}

export function watchRoom() {
  new ResizeObserver(() => {
    counted = -1; // other room: cards may fit again
    layOut();
  }).observe(document.getElementById("requests"));
}
