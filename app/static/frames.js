// Frames: htmx swaps their text, we keep the address and hand their data to the figures.

const ASK_AGAIN = 1000; // ms

/** `show(names)` draws the named figures. */
export function watchFrames(model, show) {
  document.addEventListener("htmx:before:swap", ({ detail }) => {
    const { ctx, tasks } = detail;
    if (isStale(ctx)) {
      tasks.length = 0; // the page has moved on meanwhile, and asks how the run gets on from where it is now
      return;
    }
    rememberFocus();
    if (!isFrame(tasks)) return;
    if (keepsComposer(ctx)) drop(tasks, "composer");
    // Before the swap: relative links of the new content hold from the new address on.
    if (isNewSession(ctx)) moveTo(ctx.hx.pushurl);
  });
  document.addEventListener("htmx:after:swap", async ({ detail }) => {
    const script = document.getElementById("figures");
    if (!script || script.dataset.read) {
      giveFocusBack();
      if (isRefused(detail.ctx)) document.querySelector('#composer [aria-invalid="true"]')?.focus();
      return;
    }
    script.dataset.read = "yes";
    giveFocusBack();
    if (isAdded(detail.ctx)) leaveAdd();
    await take(JSON.parse(script.textContent), model, show, detail.ctx);
    tell();
  });
  document.addEventListener("htmx:response:error", ({ detail }) => {
    // A form that comes back says beside the field what is wrong.
    if (!/<hx-partial|aria-invalid|role="alert"/.test(detail.ctx.text ?? "")) say(messageOf(detail.ctx), "error", wayOn(detail.ctx));
  });
  document.addEventListener("htmx:error", ({ detail }) => {
    if (detail.ctx) waitForServer();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("#add-send")) byPointer = event.detail > 0;
  });
  // The stops of the time line are plain links, for htmx to look at sixty of them would take as long as to draw them.
  document.getElementById("transport").addEventListener("click", (event) => {
    const stop = event.target.closest(".scrub .stop a");
    if (!stop || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { base, at } = document.querySelector("#transport .buttons").dataset;
    const query = stop.getAttribute("href").replace(/^[^?]*/, "");
    window.htmx.ajax("GET", `${base}frame${query}&from=${at}`, { target: "#transport", swap: "none" });
  });
  watchRows();
  // Back to another session or to the start: their pages differ in more than the frame.
  addEventListener("popstate", () => location.reload());
  document.getElementById("figures").dataset.read = "yes";
  toStop();
}

let focused = null;

/** A swapped form loses the focus and folds up: both are put back by id. */
function rememberFocus() {
  const at = document.activeElement;
  focused = { id: at?.id, text: at?.textContent, open: document.querySelector("#abort details")?.open };
}

function giveFocusBack() {
  if (!focused) return;
  const fold = document.querySelector("#abort details");
  if (focused.open && fold) fold.open = true;
  if (document.activeElement === document.body && focused.id) document.getElementById(focused.id)?.focus();
  focused = null;
}

let byPointer = false; // how Add was pressed last

/** The composer was sent, and took it. */
function isAdded({ sourceElement, response }) {
  return response?.status < 400 && Boolean(sourceElement?.matches?.("form.composer"));
}

/** After Add by a key the next id can be typed; after Add by the mouse the keys are time's, and Space adds no second one. */
function leaveAdd() {
  if (byPointer) document.getElementById("add-send")?.blur();
  else document.getElementById("add-id")?.select();
}

/** The composer was sent, and something in it is wrong. */
function isRefused({ sourceElement, response }) {
  return response?.status >= 400 && Boolean(sourceElement?.matches?.("form.composer"));
}

/** What happened, for those who hear the page. */
function tell() {
  const where = document.querySelector("#transport .where");
  const verdict = document.querySelector("#call article.call.chosen .verdict") ?? document.querySelector("#call .verdict");
  const parts = [...(where?.children ?? []), verdict].map((part) => part?.textContent.trim()).filter(Boolean);
  document.getElementById("live").textContent = parts.join(". ").replaceAll("..", ".");
}

/** What the frame doesn't bring keeps pointing where it did. */
function moveTo(url) {
  for (const one of document.querySelectorAll("head link, .top a, .tour a[href]")) one.setAttribute("href", one.href);
  for (const image of document.querySelectorAll(".top img")) image.src = image.src;
  leaveStory();
  history.pushState(null, "", url);
}

function leaveStory() {
  const tour = document.getElementById("tour");
  if (!tour) return;
  tour.classList.add("over");
  for (const part of tour.querySelectorAll(".intro, li")) part.hidden = true;
  tour.querySelector(".own").hidden = false;
}

/** Acting on what is no session makes one: the address changes by more than the moment. */
function isNewSession(ctx) {
  return Boolean(ctx.hx?.pushurl) && !ctx.hx.pushurl.startsWith("?");
}

function isFrame(tasks) {
  return tasks.some((task) => task.target?.id === "figures");
}

async function take(data, model, show, ctx) {
  const place = document.querySelector("#transport .buttons").dataset;
  if (!model.accepts(data)) {
    await fetchWhole(place);
    return;
  }
  const single = data.from !== null && data.from !== undefined;
  document.body.classList.toggle("stepped", single && !ctx?.quick);
  const address = location.pathname + withTheRest(place.query);
  // The browser's Back leads to the branch before; the moments of one are no places of their own.
  const branch = new URLSearchParams(location.search).get("branch") ?? place.branch;
  if (branch === place.branch) history.replaceState(history.state, "", address);
  else history.pushState(null, "", address);
  await show(model.apply(data));
  toStop();
}

/** How a run gets on, told to a page that shows another moment by now. */
function isStale(ctx) {
  const asked = new URL(ctx.request?.action ?? "", document.baseURI);
  if (ctx.request?.method !== "GET" || !asked.pathname.endsWith("/run")) return false;
  const { at, branch } = document.querySelector("#transport .buttons").dataset;
  return asked.searchParams.get("from") !== at || asked.searchParams.get("branch") !== branch;
}

let waiting = false;

/** The server is gone: say so, ask until it is back, then show this moment as it is there. */
async function waitForServer() {
  if (waiting) return;
  waiting = true;
  say("The server does not answer. This page asks again until it does; nothing that was done is lost.");
  const health = new URL("../../healthz", import.meta.url);
  while (!(await fetch(health, { cache: "no-store" }).then((answer) => answer.ok, () => false))) await pause(ASK_AGAIN);
  waiting = false;
  await fetchWhole(document.querySelector("#transport .buttons").dataset);
  say("The server is back. What was under way when it went may have to be done again.", "info");
}

function pause(milliseconds) {
  return new Promise((resolve) => { setTimeout(resolve, milliseconds); });
}

function fetchWhole({ base, query }) {
  return window.htmx.ajax("GET", `${base}frame${query}`, { target: "#transport", swap: "none" });
}

/** What the URL says beside the moment: the selection, and whether all rows of the requests are shown. */
function withTheRest(query) {
  const said = new URLSearchParams(location.search);
  const chosen = said.get("sel");
  const selected = chosen ? `${query}&sel=${encodeURIComponent(chosen).replace("%3A", ":")}` : query;
  return said.get("rows") === "all" ? `${selected}&rows=all` : selected;
}

/** Whoever asked for all rows of the requests gets them with each frame, until he asks for fewer. */
function watchRows() {
  document.addEventListener("click", ({ target }) => {
    const rows = target.closest("[data-rows]")?.dataset.rows;
    if (rows === undefined) return;
    const url = new URL(location.href);
    if (rows) url.searchParams.set("rows", rows);
    else url.searchParams.delete("rows");
    history.replaceState(history.state, "", url);
  }, { capture: true });
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (new URLSearchParams(location.search).get("rows") !== "all" || /[?&]rows=/.test(ctx.request.action)) return;
    ctx.request.action += `${ctx.request.action.includes("?") ? "&" : "?"}rows=all`;
  });
}

/** What was typed stays, unless the composer itself was sent. */
function keepsComposer(ctx) {
  const form = document.querySelector("#composer form");
  if (!form || form.contains(ctx.sourceElement)) return false;
  const typed = [...form.elements].some((field) => field.type !== "hidden" && field.value !== field.defaultValue);
  return (typed || form.contains(document.activeElement)) && !isNewSession(ctx);
}

function drop(tasks, id) {
  const at = tasks.findIndex((task) => task.target?.id === id);
  if (at >= 0) tasks.splice(at, 1);
}

/** Keep the present stop of a long time line in view. */
function toStop() {
  const stop = document.querySelector("#transport .crowded .stop.now");
  const line = stop?.parentElement;
  if (line && line.scrollWidth > line.clientWidth) line.scrollLeft = stop.offsetLeft - line.clientWidth / 2;
}

function messageOf({ text, response }) {
  try {
    return JSON.parse(text).error.message;
  } catch {
    const page = new DOMParser().parseFromString(text ?? "", "text/html");
    return page.querySelector("main p:not(.caption)")?.textContent ?? `The server answered ${response.status}.`;
  }
}

/** Where the answer's page would lead on: to a branch that lives, to the start. Its links are relative to its address. */
function wayOn({ text, request }) {
  const link = new DOMParser().parseFromString(text ?? "", "text/html").querySelector("main.alone a.button");
  if (!link) return null;
  const asked = new URL(request?.action ?? "", document.baseURI);
  return { href: new URL(link.getAttribute("href"), asked).href, text: link.textContent };
}

/** A message over the page, and a link behind it. */
export function say(message, kind = "error", way = null) {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = message;
  if (way) {
    const link = document.createElement("a");
    link.href = way.href;
    link.textContent = way.text;
    line.append(" ", link);
  }
  document.getElementById("notice").replaceChildren(line);
}
