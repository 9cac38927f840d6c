// Saving a figure as PNG or SVG: from the panel's head, or from the list of downloads.

const LONGEST = 60; // characters of the title in a file's name

export function watchPictures(figures) {
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-save]");
    if (button) save(figures, button.closest("[data-picture]").dataset.picture, button.dataset.save);
    for (const menu of document.querySelectorAll(".save[open]")) if (button || !menu.contains(target)) fold(menu);
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector(".save[open]");
    if (!menu) return;
    event.stopImmediatePropagation(); // it lets go of this first, of a selection next time
    fold(menu);
  }, { capture: true });
}

function fold(menu) {
  const had = menu.contains(document.activeElement);
  menu.open = false;
  if (had) menu.querySelector("summary").focus();
}

/** The picture of a figure as a blob, with the name of its file. */
export async function picture(figures, name, kind) {
  // Not before somebody wants one.
  const [{ pictureOf, pngOf }, { legendFigure }] = await Promise.all([import("./figures/picture.js"), import("./figures/legend.js")]);
  const { model } = figures;
  const title = document.querySelector("h1").textContent;
  const head = document.getElementById(`${name}-head`).textContent;
  const moment = `${title}, ${document.querySelector("#time-where b").textContent}`;
  const figure = figures.whole(name);
  const svg = await pictureOf(figure, figures.hosts[name], { head, moment, told: model.alt?.[name] ?? "", legend: legendFigure(name, figure, model) });
  const blob = kind === "png" ? await pngOf(svg) : new Blob([svg], { type: "image/svg+xml" });
  return { blob, file: `${fileName(title)}-${name}-after-${model.at}.${kind}` };
}

async function save(figures, name, kind) {
  const live = document.getElementById("live");
  try {
    const { blob, file } = await picture(figures, name, kind);
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    live.textContent = `${file} is saved.`;
  } catch {
    live.textContent = `This picture can't be made as ${kind.toUpperCase()} here; the other kind may work.`;
  }
}

/** Letters and digits of any script, and hyphens: as the server names its files. */
function fileName(title) {
  const kept = [...title.replace(/[^\p{L}\p{M}\p{N}]/gu, "-").replace(/-+/g, "-")].slice(0, LONGEST).join("");
  return kept.replace(/^-+|-+$/g, "") || "poolscope";
}
