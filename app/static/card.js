// The card over the page: a block's life, or why something is so. It follows the moment while it is pinned.

export class Card {
  constructor() {
    this.place = document.getElementById("card");
    this.pinned = null; // what is asked for: `block/3`, or `why?…`
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a.why");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.pinWhy(link, event);
    });
  }

  get open() {
    return this.pinned !== null || !this.place.hidden;
  }

  /** Show it after a while, unless it is called off. */
  later(delay, what, event, stillWanted) {
    this.timer = setTimeout(() => this.#load(what, event, stillWanted), delay);
  }

  cancel() {
    clearTimeout(this.timer);
  }

  pin(what, event) {
    this.cancel();
    this.pinned = what;
    this.from = document.activeElement;
    return this.#load(what, event, () => this.pinned === what);
  }

  /** A "Why?" link: its question, asked again of each later moment while it makes sense there. */
  async pinWhy(link, event) {
    const query = new URLSearchParams(link.getAttribute("href").split("?")[1]);
    query.delete("branch");
    query.delete("at");
    const { left, bottom } = link.getBoundingClientRect();
    link.closest("[popover]")?.hidePopover(); // which gives the focus back to where it was opened
    await this.pin(`why?${query}`, { clientX: event.clientX || left, clientY: event.clientY || bottom });
    this.focus();
  }

  /** For those who came by keys; closing it leads back to where they were. */
  focus() {
    this.place.querySelector(".close")?.focus();
  }

  hide() {
    this.place.hidden = true;
  }

  close() {
    this.cancel();
    const had = this.pinned !== null && this.place.contains(document.activeElement);
    this.pinned = null;
    this.hide();
    if (had && this.from?.isConnected) this.from.focus();
  }

  refresh() {
    if (this.pinned !== null) this.#load(this.pinned, null, (what) => this.pinned === what);
    else this.hide();
  }

  async #load(what, event, stillWanted) {
    const { base, query } = document.querySelector("#transport .buttons").dataset;
    const url = `${base}${what.startsWith("why?") ? what.replace("why?", `why${query}&`) : `${what}${query}`}`;
    await window.htmx.ajax("GET", url, { target: "#card", swap: "innerHTML" });
    if (!stillWanted(what)) return;
    // An error page is no card: its question makes no sense at this moment.
    const card = this.place.querySelector(".card");
    this.place.hidden = !card;
    if (!card) this.place.replaceChildren();
    if (event && card) this.#move(event.clientX, event.clientY);
  }

  /** Beside the pointer, inside the window. */
  #move(x, y) {
    const { offsetWidth: w, offsetHeight: h } = this.place;
    const right = x + 22 + w < innerWidth ? x + 22 : Math.max(8, x - w - 22);
    this.place.style.left = `${right}px`;
    this.place.style.top = `${Math.max(8, Math.min(y + 18, innerHeight - h - 8))}px`;
  }
}
