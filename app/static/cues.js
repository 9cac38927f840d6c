// Which edge of a list that scrolls hides more: CSS fades it. What is unfolded is scrolled into view.

const SCROLLS = "#requests, #acts, #call-panel, .figure.scrolls, .log ol, .life, .card .facts, #tour-words";
const SLACK = 2; // px

export function watchCues() {
  document.addEventListener("scroll", ({ target }) => { if (target.matches?.(SCROLLS)) cue(target); }, { capture: true, passive: true });
  document.addEventListener("toggle", ({ target }) => {
    if (!target.matches("details")) return;
    if (target.open && target.closest("#acts")) target.scrollIntoView({ block: "nearest" });
    refreshCues();
  }, true);
  addEventListener("resize", refreshCues);
  document.addEventListener("htmx:after:swap", refreshCues);
  new ResizeObserver(refreshCues).observe(document.querySelector(".workspace"));
  refreshCues();
}

export function refreshCues() {
  for (const one of document.querySelectorAll(SCROLLS)) cue(one);
}

function cue(list) {
  const more = [];
  const hidden = list.scrollHeight - list.clientHeight;
  if (hidden > SLACK && getComputedStyle(list).overflowY !== "visible") {
    if (list.scrollTop > SLACK) more.push("above");
    if (list.scrollTop < hidden - SLACK) more.push("below");
  }
  if (more.length) list.dataset.more = more.join(" ");
  else delete list.dataset.more;
}
