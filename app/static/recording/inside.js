// A frame is the server's, whoever sees it. Here, what acts or asks a server is taken out before it comes into the page,
// and what leads to a moment that the file doesn't hold leads nowhere.

const ASKS = ".until form, form.act:has(#go-run), #go-stop, .probe-tab, .ask, .whys, a.why, #to-config a, .notice-run";

/** Bring a document or a fragment to what a recording of the moments `first` to `last` can do. */
export function keepInside(root, { first, last }) {
  for (const one of root.querySelectorAll(ASKS)) one.remove();
  for (const form of root.querySelectorAll("form.act:has(#go-step)")) form.replaceWith(endOf(form));
  for (const form of root.querySelectorAll("form[method=post]")) form.remove();
  for (const link of root.querySelectorAll("#go-branches")) link.replaceWith(...link.childNodes);
  const at = Number(root.querySelector("#time-buttons")?.dataset.at);
  for (const [id, bound] of [["go-first", first], ["go-last", last]]) {
    const link = root.querySelector(`#${id}[href]`);
    if (link && at === bound) turnOff(link);
    else if (link) point(link, bound);
  }
  for (const link of root.querySelectorAll("[hx-get*='frame?'], .stop a[href]")) if (leadsOut(link, first, last)) turnOff(link);
  for (const chip of root.querySelectorAll("a[data-block]")) {
    chip.setAttribute("href", `?${chip.getAttribute("href").split("?")[1]}&sel=block:${chip.dataset.block}`);
  }
}

/** Of many calls some are not in the file: `tells(at, index)`. */
export function keepCalls(root, tells) {
  const menu = root.querySelector("#call-menu");
  for (const option of menu?.options ?? []) {
    if (!tells(numberIn(menu, "at"), Number(option.value))) Object.assign(option, { disabled: true, title: UNTOLD });
  }
  for (const tab of root.querySelectorAll("a[hx-get*='call?']")) {
    if (tells(numberIn(tab, "at"), numberIn(tab, "call"))) continue;
    const words = document.createElement("span");
    Object.assign(words, { className: "off", title: UNTOLD });
    words.append(...tab.childNodes);
    tab.replaceWith(words);
  }
}

const UNTOLD = "This call is not in the file";

/** At the end there is no step any more. */
function endOf(form) {
  const step = document.createElement("a");
  Object.assign(step, { className: "tool main off", id: "go-step", title: "This is the end" });
  step.setAttribute("role", "link");
  step.setAttribute("aria-disabled", "true");
  step.append(...form.querySelector("#go-step").childNodes);
  return step;
}

function numberIn(link, name) {
  return Number(new URLSearchParams((link.getAttribute("hx-get") ?? link.getAttribute("href")).split("?")[1]).get(name));
}

function leadsOut(link, first, last) {
  const at = numberIn(link, "at");
  return at < first || at > last;
}

function point(link, at) {
  for (const name of ["href", "hx-get"]) link.setAttribute(name, link.getAttribute(name).replace(/([?&]at=)\d+/, `$1${at}`));
}

function turnOff(link) {
  for (const name of ["href", "hx-get"]) link.removeAttribute(name);
  link.setAttribute("role", "link");
  link.setAttribute("aria-disabled", "true");
  link.classList.add("off");
  const stop = link.closest(".stop");
  if (stop) stop.classList.add("outside");
  else link.title = "Not in this recording";
}
