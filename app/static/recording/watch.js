// A page without a server: htmx asks as ever, and the recording answers.

import { keepCalls, keepInside } from "./inside.js";
import { Recording, unpack } from "./server.js";

const place = document.getElementById("recording");
const bounds = { first: Number(place.dataset.first), last: Number(place.dataset.last) };
let recording = null;
const opened = unpack(place.textContent).then((held) => {
  recording = new Recording(held);
  keepCalls(document, tells);
  return recording;
});

opened.catch(() => {
  const line = Object.assign(document.createElement("p"), { className: "error", textContent: "This browser can't read the recording: it is too old, or the file is damaged." });
  document.getElementById("notice").replaceChildren(line);
});

function tells(at, index) {
  return recording.call(at, index) !== null;
}

async function answer(url) {
  const text = (await opened).answer(url);
  const headers = { "content-type": "text/html" };
  return text === null ? new Response("", { status: 404, headers }) : new Response(text, { headers });
}

/** Some browsers refuse to write the address of a file: it stays then. */
function keepAddress() {
  const write = history.replaceState.bind(history);
  history.replaceState = (...given) => {
    try { write(...given); } catch { /* the page goes on without */ }
  };
}

/** A link to a moment of this file, opened anew. */
export async function goToAddress() {
  const at = new URLSearchParams(location.search).get("at");
  const { base, branch, at: now } = document.getElementById("time-buttons").dataset;
  if (!/^\d+$/.test(at ?? "") || at === now) return;
  await window.htmx.ajax("GET", `${base}frame?branch=${branch}&at=${at}`, { target: "#transport", swap: "none" });
}

keepAddress();
keepInside(document, bounds);
document.addEventListener("htmx:before:request", ({ detail }) => { if (detail.ctx) detail.ctx.fetch = answer; });
document.addEventListener("htmx:before:swap", ({ detail }) => {
  for (const { fragment } of detail.tasks) {
    if (!fragment) continue;
    keepInside(fragment, bounds);
    keepCalls(fragment, tells);
  }
});
