// The scrubber and autoplay. The range stays in the page while frames come and go, so that it can be dragged.

const KEPT = ["time-buttons", "until-stops", "time-stops", "time-where"]; // what a frame changes inside of these
const MOVES = "#time-buttons :is(a, form button), .until-menu form button, .scrub .stop a, .tour-go a, [hx-get*='frame?']";
const FAST = 4; // steps a second: above it nothing moves on the page

export function watchTime(model) {
  const time = new Time(model);
  document.addEventListener("htmx:before:swap", ({ detail }) => time.keep(detail.tasks, detail.ctx));
  document.addEventListener("htmx:before:request", ({ detail }) => {
    if (detail.ctx && time.quick) detail.ctx.quick = true;
    if (time.timer !== null && detail.ctx?.request.action.endsWith(time.asked)) detail.ctx.played = true;
  });
  document.addEventListener("htmx:after:swap", ({ detail }) => {
    time.watchRun(detail.ctx);
    time.shown();
  });
  const line = document.getElementById("transport");
  line.addEventListener("input", ({ target }) => { if (target.id === "scrub") time.scrub(Number(target.value)); });
  line.addEventListener("change", ({ target }) => { if (target.id === "scrub") time.scrub(Number(target.value)); });
  line.addEventListener("pointermove", (event) => time.point(event));
  line.addEventListener("pointerleave", () => time.point(null));
  line.addEventListener("click", ({ target }) => { if (target.closest("#play, #go-pause")) time.toggle(); });
  document.addEventListener("click", ({ target }) => { if (target.closest(MOVES)) time.pause(); }, true); // by hand
  for (const name of ["pointerover", "focusin"]) line.addEventListener(name, ({ target }) => showTarget(target.closest(".until-stop")));
  for (const name of ["pointerleave", "focusout", "click"]) line.addEventListener(name, () => showTarget(null));
  document.addEventListener("click", ({ target }) => {
    const menu = document.getElementById("time-until");
    if (menu.open && (!menu.contains(target) || target.closest(".until-stop, #until-run, #step-instead"))) menu.open = false;
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") document.getElementById("time-until").open = false;
  });
}

/** A frame of another moment, not the answer of a run. */
function looksElsewhere(ctx) {
  return ctx?.request?.method === "GET" && new URL(ctx.request.action, document.baseURI).pathname.endsWith("/frame");
}

/** A ring in ink where the run would stop. */
function showTarget(button) {
  const mark = document.getElementById("until-target");
  mark.hidden = button?.dataset.to === undefined;
  if (mark.hidden) return;
  const { offsetLeft, offsetWidth, max } = document.getElementById("scrub");
  mark.style.left = `${offsetLeft + 8 + (Number(button.dataset.to) / Math.max(1, Number(max))) * (offsetWidth - 16)}px`;
  mark.dataset.label = button.dataset.label;
}

class Time {
  constructor(model) {
    this.model = model;
    this.wanted = null; // where the scrubber was pulled to
    this.asking = false;
    this.timer = null;
    this.asked = null; // the frame that a play asked for last
    this.runsOn = null; // the branch of a run that is told of
    this.watchRun();
  }

  get place() { return document.getElementById("time-buttons").dataset; }

  get speed() { return Number(document.getElementById("play-speed").value); }

  get quick() { return this.wanted !== null || (this.timer !== null && this.speed > FAST); }

  /** Split the transport's part of a frame: its pieces change, the range and the menu stay. */
  keep(tasks, ctx) {
    if (ctx?.played && this.timer === null) {
      tasks.length = 0; // paused while this step of a play was on its way
      return;
    }
    const at = tasks.findIndex((task) => task.target?.id === "transport");
    if (at < 0) return;
    const { fragment, swapSpec, sourceElement, type } = tasks[at];
    const old = document.getElementById("scrub");
    const fresh = fragment.querySelector("#scrub");
    if (!old || !fresh || fragment.querySelector("#time-buttons").dataset.base !== this.place.base) return;
    const told = KEPT.filter((id) => document.getElementById(id) && fragment.querySelector(`#${id}`)); // a recording lacks some
    const pieces = told.map((id) => {
      const target = document.getElementById(id);
      const piece = fragment.querySelector(`#${id}`);
      for (const { name, value } of piece.attributes) target.setAttribute(name, value);
      const inner = document.createDocumentFragment();
      inner.append(...piece.childNodes);
      return { type, fragment: inner, target, swapSpec, sourceElement };
    });
    for (const { name, value } of fresh.attributes) if (name !== "value") old.setAttribute(name, value);
    if (this.wanted === null) old.value = fresh.getAttribute("value");
    const values = fragment.querySelectorAll("#time-until .moment input");
    document.querySelectorAll("#time-until .moment input").forEach((input, i) => { input.value = values[i].value; });
    tasks.splice(at, 1, ...pieces);
  }

  /** Go where the scrubber is; while one frame is on its way only the latest place is remembered. */
  async scrub(at) {
    this.pause();
    this.wanted = at;
    if (this.asking) return;
    this.asking = true;
    try {
      while (this.wanted !== null && this.wanted !== this.model.at) {
        const { base, branch } = this.place;
        const to = this.wanted;
        await window.htmx.ajax("GET", `${base}frame?branch=${branch}&at=${to}&from=${this.model.at}`, { target: "#transport", swap: "none" });
        if (this.wanted === to) break;
      }
    } finally {
      this.asking = false;
      this.wanted = null;
      document.getElementById("scrub").value = this.place.at; // where it went may be short of where it was pulled to
    }
  }

  /** Step is Stop while a run is followed; one that ended while another moment was asked for is asked how it did. */
  watchRun(ctx) {
    const stop = document.getElementById("run-stop");
    const ended = stop ? null : this.runsOn;
    this.runsOn = stop?.dataset.branch ?? null;
    document.body.classList.toggle("runs", stop?.dataset.followed !== undefined);
    if (!ended || !looksElsewhere(ctx)) return;
    const { base, query, at } = this.place;
    window.htmx.ajax("GET", `${base}run${query}&from=${at}&of=${ended}`, { target: "#transport", swap: "none" });
  }

  /** The stop under the pointer shows its words: the range lies over it. */
  point(event) {
    document.querySelector("#time-stops .pointed")?.classList.remove("pointed");
    if (event?.target.id !== "scrub" || event.target.dataset.folded === "yes") return;
    const box = event.target.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left - 8) / (box.width - 16)));
    const at = Math.round(share * Number(event.target.max));
    document.getElementById(`stop-${at}`)?.parentElement.classList.add("pointed");
  }

  toggle() {
    if (this.timer !== null) this.pause();
    else {
      this.timer = setTimeout(() => this.tick());
      this.#press(true);
    }
  }

  pause() {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.#press(false);
  }

  /** Pause stands where Step was, and takes the focus over from what goes: the menu, or Step itself. */
  #press(on) {
    const button = document.getElementById("play");
    const menu = document.getElementById("time-until");
    const held = document.activeElement;
    const moves = held?.closest(on ? "#time-until, #go-step" : "#go-pause");
    document.body.classList.toggle("plays", on);
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Pause" : "Play";
    if (on) menu.open = false;
    if (moves) document.getElementById(on ? "go-pause" : "go-step").focus();
  }

  /** One step over what is recorded; at the end it pauses. */
  tick() {
    const { at, end } = this.place;
    if (Number(at) >= Number(end)) {
      this.pause();
      return;
    }
    this.asked = document.getElementById("go-step").getAttribute("hx-get");
    window.htmx.ajax("GET", this.asked, { target: "#transport", swap: "none" });
  }

  /** A frame is in: the next step of a play waits its time from here. */
  shown() {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tick(), this.speed >= 20 ? 0 : 1000 / this.speed);
  }
}
