// What keys do in the text: Enter keeps the indentation, Tab indents. Who only passes through with Tab isn't held: it
// indents from the first thing typed or clicked on, until Esc.

const STEP = "  ";
const UNDOABLE = 60; // lines; browsers take seconds to insert some hundreds so that they can be undone

export function watchTyping(area, send) {
  let typing = false;
  area.addEventListener("focus", () => { typing = false; });
  area.addEventListener("pointerdown", () => setTimeout(() => { typing = true; }));
  area.addEventListener("input", () => { typing = true; });
  area.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") typing = false;
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    else if (event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && undoReplaced(area)) typing = true;
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "Tab" && typing) indent(area, event.shiftKey);
    else if (event.key === "Enter" && !event.shiftKey) breakLine(area);
    else return;
    if (event.key !== "Escape") event.preventDefault();
  });
}

/** Put text in the place of the selection, so that it can be undone. */
function insert(area, text) {
  const isLong = text.split("\n", UNDOABLE + 1).length > UNDOABLE;
  if (!isLong && document.execCommand("insertText", false, text)) return;
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

let replaced = null;

/** Another text in the place of all of it. The browser forgets how to undo then, so the last one is kept here. */
export function replaceAll(area, text) {
  replaced = { before: area.value, after: text };
  show(area, text);
}

function show(area, text) {
  area.value = text;
  area.focus({ preventScroll: true });
  area.setSelectionRange(0, 0);
  area.scrollTo(0, 0);
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Take a replaced text back; returns whether there was one. */
function undoReplaced(area) {
  if (replaced === null || area.value !== replaced.after) return false;
  const { before } = replaced;
  replaced = null;
  show(area, before);
  return true;
}

function breakLine(area) {
  const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
  const [space] = /^[ \t]*/.exec(area.value.slice(start, area.selectionStart));
  const opens = /[[{]$/.test(area.value.slice(start, area.selectionStart).trimEnd());
  insert(area, `\n${space}${opens ? STEP : ""}`);
}

function indent(area, back) {
  const { selectionStart: from, selectionEnd: to, value } = area;
  if (from === to && !back) {
    insert(area, STEP);
    return;
  }
  const start = value.lastIndexOf("\n", from - 1) + 1;
  const lines = value.slice(start, to).split("\n");
  const moved = lines.map((line) => (back ? line.replace(/^(?: {1,2}|\t)/, "") : STEP + line)).join("\n");
  if (moved === lines.join("\n")) return;
  area.setSelectionRange(start, to);
  insert(area, moved);
  area.setSelectionRange(from === to ? area.selectionEnd : start, start + moved.length);
}
