// The list of branches opens over the call and goes with the next frame.

export function watchBranches() {
  const place = document.getElementById("branches");
  const close = () => {
    if (!place.firstElementChild) return;
    place.replaceChildren();
    document.getElementById("go-branches")?.focus();
  };
  document.addEventListener("htmx:after:swap", () => {
    const script = document.getElementById("figures");
    if (!script.dataset.closed) {
      script.dataset.closed = "yes"; // a new frame
      place.replaceChildren();
    }
    if (!place.firstElementChild) return; // to measure has the page laid out at once
    // Under the bar of time, wherever the page is scrolled to; on a phone that bar is below.
    const { top, bottom } = document.getElementById("transport").getBoundingClientRect();
    if (top < innerHeight / 2) place.style.setProperty("--under", `${Math.max(0, bottom)}px`);
  });
  document.getElementById("figures").dataset.closed = "yes";
  document.addEventListener("click", ({ target }) => {
    if (target.closest(".close-branches")) close();
    else if (!place.contains(target) && !target.closest("#go-branches")) place.replaceChildren();
  });
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); });
}
