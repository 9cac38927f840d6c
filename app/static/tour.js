// A story's stops: each is a moment and a selection; the note of the one that is shown stands beside the workspace.

export class Tour {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.place = document.getElementById("tour");
    if (!this.place) return;
    this.stops = [...this.place.querySelectorAll("[data-at]")];
    this.at = this.stops.findIndex((stop) => !stop.hidden);
    this.wanted = null; // the selection of the stop that is on its way
    this.place.addEventListener("click", (event) => {
      const link = event.target.closest("a[id]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.go(link.id === "tour-next" ? this.#next() : this.#before());
    });
  }

  /** Go to a stop by its place in the story. */
  go(place) {
    const stop = this.stops[place];
    if (!stop) return;
    this.at = place;
    this.wanted = stop.dataset.select;
    if (Number(stop.dataset.at) === this.model.at) this.refresh();
    else {
      const { base } = document.getElementById("time-buttons").dataset;
      const query = stop.dataset.query.replace(/&sel=.*/, "");
      window.htmx.ajax("GET", `${base}frame${query}&from=${this.model.at}`, { target: "#transport", swap: "none" });
    }
  }

  /** After a frame, or when a stop was chosen: show the note of this moment. */
  refresh() {
    if (!this.place || this.place.classList.contains("over")) return;
    const { at } = this.model;
    if (Number(this.stops[this.at]?.dataset.at) !== at) this.at = this.stops.findIndex((stop) => Number(stop.dataset.at) === at);
    for (const [place, stop] of this.stops.entries()) stop.hidden = place !== this.at;
    this.place.querySelector(".intro").hidden = this.at >= 0;
    document.getElementById("tour-where").textContent = this.at < 0 ? `${this.stops.length} stops` : `${this.at + 1} of ${this.stops.length}`;
    this.#link("tour-back", this.stops[this.#before()]);
    this.#link("tour-next", this.stops[this.#next()]);
    if (this.wanted === null || this.at < 0) return;
    const wanted = this.wanted;
    this.wanted = null;
    this.selection.choose(wanted);
  }

  #next() {
    if (this.at >= 0) return this.at + 1;
    return this.stops.findIndex((stop) => Number(stop.dataset.at) > this.model.at);
  }

  #before() {
    if (this.at >= 0) return this.at - 1;
    return this.stops.findLastIndex((stop) => Number(stop.dataset.at) < this.model.at);
  }

  #link(id, stop) {
    const link = document.getElementById(id);
    link.classList.toggle("off", !stop);
    if (stop) {
      link.setAttribute("href", stop.dataset.query);
      link.removeAttribute("aria-disabled");
      link.removeAttribute("role");
    } else {
      link.removeAttribute("href");
      link.setAttribute("aria-disabled", "true");
      link.setAttribute("role", "link");
    }
  }
}
