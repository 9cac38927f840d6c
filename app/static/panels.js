// What the panels do besides following time: choosing a call, probing, filtering the log, enlarging the pool, folding.

import { isolated } from "./isolate.js";

export class Panels {
  constructor(figures) {
    this.figures = figures;
    this.panel = document.getElementById("call-panel");
    this.probe = document.getElementById("probe");
    this.filter = { kind: "", request: "" };
    this.#watchCalls();
    this.#watchLog();
    this.#watchPool();
    this.#watchFolds();
    this.refresh();
  }

  /** After a frame: what was set here goes on. */
  refresh() {
    this.#filterLog();
    if (this.panel.classList.contains("probing")) this.#askProbe();
    else this.#markTab();
  }

  #watchCalls() {
    this.panel.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      const tab = event.target.closest("[data-call]");
      if (tab) {
        event.preventDefault();
        this.#leaveProbe();
        if (!tab.hasAttribute("hx-get")) this.#choose(tab.dataset.call);
      } else if (event.target.closest("#probe-tab")) {
        event.preventDefault();
        this.panel.classList.add("probing");
        this.probe.hidden = false;
        this.#askProbe();
      }
    });
    this.panel.addEventListener("change", (event) => {
      if (event.target.id === "call-menu") this.#leaveProbe();
    });
    document.addEventListener("htmx:after:swap", ({ detail }) => {
      if (detail.ctx.target?.id === "call") this.#markTab();
    });
  }

  #choose(index) {
    for (const article of document.querySelectorAll("#call article.call")) {
      article.classList.toggle("chosen", article.id === `call-${index}`);
    }
    for (const tab of document.querySelectorAll("#call [data-call]")) setCurrent(tab, tab.dataset.call === String(index));
    const url = new URL(location.href);
    url.searchParams.set("call", index);
    history.replaceState(history.state, "", url);
  }

  #leaveProbe() {
    this.panel.classList.remove("probing");
    this.probe.hidden = true;
    this.#markTab();
  }

  /** Esc; returns whether it was open. */
  closeProbe() {
    const open = this.panel.classList.contains("probing");
    if (open) this.#leaveProbe();
    return open;
  }

  #markTab() {
    const probing = this.panel.classList.contains("probing");
    const tab = document.getElementById("probe-tab");
    if (tab) setCurrent(tab, probing);
    const chosen = document.querySelector("#call article.chosen")?.id;
    for (const one of document.querySelectorAll("#call [data-call]")) setCurrent(one, !probing && `call-${one.dataset.call}` === chosen);
  }

  /** The probe of this moment, with what stands in its form. */
  async #askProbe() {
    this.#markTab();
    const { base, query } = document.querySelector("#transport .buttons").dataset;
    const form = this.probe.querySelector("form");
    const typed = new URLSearchParams(form ? new FormData(form) : {});
    typed.delete("branch");
    typed.delete("at");
    const asked = this.probe.querySelector("article") ? `&${typed}` : "";
    await window.htmx.ajax("GET", `${base}probe${query}${asked}`, { target: "#probe", swap: "innerHTML" });
  }

  #watchLog() {
    document.getElementById("log").addEventListener("change", (event) => {
      if (event.target.id === "log-kind") this.filter.kind = event.target.value;
      if (event.target.id === "log-request") this.filter.request = event.target.value;
      this.#filterLog();
    });
  }

  #filterLog() {
    const { kind, request } = this.filter;
    const [kinds, requests] = [document.getElementById("log-kind"), document.getElementById("log-request")];
    if (!kinds) return;
    const list = document.querySelector("#log .sentences");
    const events = document.querySelector("#log .events");
    this.#nameRequests(requests, document.getElementById("log"));
    kinds.value = kind;
    kinds.classList.toggle("set", kind !== "");
    requests.classList.toggle("set", request !== "");
    list.hidden = kind === "kv";
    if (events) events.hidden = kind !== "kv";
    const wanted = kind === "" ? null : kind.split(" ");
    let shown = 0;
    const lines = kind === "kv" && events ? events : list;
    for (const line of lines.querySelectorAll("[data-requests]")) {
      line.hidden = (wanted && kind !== "kv" && !wanted.includes(line.className)) || (request && !line.dataset.requests.split(" ").includes(request));
      if (!line.hidden) shown += 1;
    }
    for (const line of document.querySelectorAll("#log .none")) line.remove();
    if (!shown && lines.querySelector("[data-requests]")) {
      const line = lines.appendChild(document.createElement("li"));
      line.className = "fact none";
      line.textContent = "Nothing of this kind in this step.";
    }
  }

  /** The requests that this step tells of; the chosen one stays in the list. */
  #nameRequests(select, list) {
    const { requests } = this.figures.model;
    const told = new Set([...list.querySelectorAll("[data-requests]")].flatMap((line) => line.dataset.requests.split(" ")).filter(Boolean));
    if (this.filter.request) told.add(this.filter.request);
    const options = [...told].map(Number).sort((a, b) => a - b).filter((n) => n < (requests?.length ?? 0))
      .map((n) => new Option(isolated(requests[n]), String(n)));
    select.replaceChildren(new Option("of all", ""), ...options);
    select.value = this.filter.request;
  }

  #watchPool() {
    document.getElementById("enlarge").addEventListener("click", () => this.#enlarge(!this.figures.enlarged));
    for (const [id, step] of [["zoom-in", 1], ["zoom-out", -1]]) {
      document.getElementById(id).addEventListener("click", () => this.figures.zoom(step));
    }
  }

  #enlarge(on) {
    document.getElementById("enlarge").setAttribute("aria-pressed", on);
    document.querySelector(".centre").classList.toggle("enlarged", on);
    this.figures.enlarge(on);
  }

  /** Esc; returns whether the pool was enlarged. */
  leaveEnlarged() {
    if (!this.figures.enlarged) return false;
    this.#enlarge(false);
    return true;
  }

  /** On a phone one panel at a time; where the window is narrow the composer opens from the strip, and the foot to its rest. */
  #watchFolds() {
    const { body } = document;
    for (const tab of document.querySelectorAll(".tabbar button")) {
      tab.addEventListener("click", () => {
        body.dataset.tab = tab.dataset.tab;
        for (const one of document.querySelectorAll(".tabbar button")) one.setAttribute("aria-pressed", one === tab);
      });
    }
    for (const [id, name, where] of [["open-composer", "composing", ".left"], ["open-foot", "open", ".foot"]]) {
      const button = document.getElementById(id);
      button?.addEventListener("click", () => {
        const on = document.querySelector(where).classList.toggle(name);
        button.setAttribute("aria-expanded", on);
        if (name === "open") button.textContent = on ? "Less over time" : "More over time";
        if (on && name === "composing") document.getElementById("add-id")?.focus();
      });
    }
  }
}

function setCurrent(element, on) {
  if (on) element.setAttribute("aria-current", "true");
  else element.removeAttribute("aria-current");
}
