// The share dialog, and links in the header that follow the moment.

import "./copy.js";

export function watchShare() {
  const dialog = document.getElementById("share");
  document.getElementById("go-share")?.addEventListener("click", async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    follow();
    await window.htmx.ajax("GET", event.currentTarget.getAttribute("href"), { target: "#share", swap: "innerHTML" });
    if (dialog.querySelector(".share") && !dialog.open) dialog.showModal();
    dialog.querySelector("[data-copy]")?.focus();
  });
  dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => dialog.replaceChildren());
  for (const id of ["go-share", "open-in"]) {
    for (const kind of ["pointerdown", "focus"]) document.getElementById(id)?.addEventListener(kind, follow);
  }
  document.addEventListener("htmx:after:swap", follow);
}

/** What is shared and opened elsewhere is what is seen here: the moment and the selection. */
function follow() {
  const { base, query } = document.getElementById("time-buttons").dataset;
  const chosen = new URLSearchParams(location.search).get("sel");
  const all = chosen ? `${query}&sel=${encodeURIComponent(chosen)}` : query;
  document.getElementById("go-share")?.setAttribute("href", `${base}share${all}`);
  const open = document.getElementById("open-in");
  open?.setAttribute("href", `${open.dataset.page}${all}`);
}
