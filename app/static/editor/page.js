// The editor with JavaScript: checked while one types, mistakes marked in their lines, files read into the text.

import { refusal, watchDrops } from "./files.js";
import { Lines } from "./lines.js";
import { replaceAll, watchTyping } from "./typing.js";

const WAIT = 350; // ms without typing

const form = document.querySelector("form.edit");
const area = document.getElementById("text");
const verdict = document.getElementById("verdict");
const lines = new Lines(area);
let asked = null;
let timer = 0;

/** Ask the server what is wrong with these bytes, and show it. */
async function check(body, name = "") {
  clearTimeout(timer);
  asked?.abort();
  asked = new AbortController();
  verdict.setAttribute("aria-busy", "true");
  try {
    const query = name ? `${form.dataset.check.includes("?") ? "&" : "?"}name=${encodeURIComponent(name)}` : "";
    show(await post(`${form.dataset.check}${query}`, body, asked.signal));
  } catch (error) {
    if (error.name === "AbortError") return;
    say(error instanceof Refused ? error.message : "The server does not answer. What you typed is still here.");
  }
  verdict.removeAttribute("aria-busy");
}

class Refused extends Error {}

async function post(url, body, signal) {
  const headers = { "HX-Request": "true", "Content-Type": "text/plain" };
  const answer = await fetch(url, { method: "POST", body, headers, signal });
  const text = await answer.text();
  if (answer.ok || answer.status === 422 || answer.status === 400) return text;
  let message = `The server answered ${answer.status}.`;
  try { message = JSON.parse(text).error.message; } catch { /* a page */ }
  throw new Refused(message);
}

/** The server's words; the places in them are marked in the text. */
function show(html) {
  verdict.innerHTML = html;
  mark();
}

function say(message) {
  const line = document.createElement("p");
  line.className = "says error";
  line.textContent = message;
  verdict.replaceChildren(line);
}

const placeOf = ({ dataset }) => ({ line: Number(dataset.line), column: Number(dataset.column), length: Number(dataset.length) });

function mark() {
  const places = [...verdict.querySelectorAll(".place")].map(placeOf);
  lines.mark(places);
  area.setAttribute("aria-invalid", String(verdict.querySelector(".problems") !== null));
}

/** A file's text comes into the editor; what is no text stays out, and the server says what it is. */
async function read(file) {
  const problem = refusal(file, Number(form.dataset.most));
  if (problem) {
    say(problem);
    return;
  }
  let bytes;
  try {
    bytes = await file.arrayBuffer();
  } catch {
    say(`“${file.name}” can't be read.`);
    return;
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.trim() && !text.includes("\0")) replaceAll(area, text.replaceAll("\r\n", "\n").replaceAll("\r", "\n"));
  } catch { /* the editor keeps what it has */ }
  await check(bytes, file.name);
}

async function tidy() {
  try {
    const answer = await post(form.dataset.tidy, area.value);
    if (answer.trimStart().startsWith("<")) show(answer);
    else {
      replaceAll(area, answer);
      await check(area.value);
    }
  } catch (error) {
    say(error instanceof Refused ? error.message : "The server does not answer. What you typed is still here.");
  }
}

function tellCaret() {
  const { line, column } = lines.caret();
  document.getElementById("caret").textContent = `line ${line}, column ${column}`;
}

area.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => check(area.value), WAIT);
});
document.addEventListener("selectionchange", () => { if (document.activeElement === area) tellCaret(); });
verdict.addEventListener("click", (event) => {
  const place = event.target.closest(".place");
  if (!place) return;
  event.preventDefault();
  lines.go(placeOf(place));
});
document.getElementById("tidy").addEventListener("click", (event) => {
  event.preventDefault();
  tidy();
});
document.getElementById("file").addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  target.value = ""; // what is in the text counts from here on
  if (file) await read(file);
});
watchTyping(area, () => form.requestSubmit(document.getElementById("open")));
watchDrops(read, say);
if (verdict.querySelector(".problems")) {
  mark();
  const first = verdict.querySelector(".place");
  if (first) lines.go(placeOf(first));
} else check(area.value);
