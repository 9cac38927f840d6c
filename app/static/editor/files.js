// Files that are chosen or dropped. `read(file, list)` takes one, and the list of it; `say(message)` tells what can't be.

const UNITS = ["bytes", "kB", "MB", "GB"];

/** A size as people say it. */
export function sized(bytes) {
  let [size, unit] = [bytes, 0];
  while (size >= 1000 && unit < UNITS.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${unit && size < 10 ? size.toFixed(1) : Math.round(size)} ${UNITS[unit]}`;
}

/** Why a file can't be taken; "" if it can. */
export function refusal(file, most) {
  if (file.size <= most) return "";
  return `“${file.name}” is too large: it has ${sized(file.size)}, and Poolscope takes ${sized(most)}.`;
}

/** Files may be dropped anywhere on the page. */
export function watchDrops(read, say) {
  const has = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  let depth = 0;
  const mark = (on) => {
    depth = on;
    document.body.classList.toggle("dragged", depth > 0);
  };
  addEventListener("dragenter", (event) => { if (has(event)) mark(depth + 1); });
  addEventListener("dragleave", (event) => { if (has(event)) mark(Math.max(depth - 1, 0)); });
  addEventListener("dragover", (event) => {
    if (!has(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
  });
  addEventListener("drop", (event) => {
    mark(0);
    if (!has(event)) return;
    event.preventDefault();
    const { files } = event.dataTransfer;
    if (files.length === 1) read(files[0], files);
    else say(files.length ? "One file at a time, please." : "That is no file.");
  });
}
