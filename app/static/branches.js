// The list of branches opens over the page and goes with the next frame.

export function watchBranches() {
  const place = document.getElementById("branches");
  const close = () => {
    if (!place.firstElementChild) return;
    place.replaceChildren();
    document.getElementById("go-branches")?.focus();
  };
  document.addEventListener("htmx:after:swap", () => {
    const script = document.getElementById("figures");
    if (script.dataset.closed) return;
    script.dataset.closed = "yes"; // a new frame
    place.replaceChildren();
  });
  document.getElementById("figures").dataset.closed = "yes";
  document.addEventListener("click", ({ target }) => {
    if (target.closest(".close-branches")) close();
    else if (!place.contains(target) && !target.closest("#go-branches")) place.replaceChildren();
  });
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); });
}
