// Which keys belong to the element that has the focus.

const TYPED = "input:not([type=range], [type=checkbox], [type=radio]), select, textarea, [contenteditable]";
const SLIDES = /^(Arrow(Up|Down|Left|Right)|Home|End|Page(Up|Down))$/;

/** Whether the key is the element's: all where text is typed or chosen, what moves it on a slider, Space on a button. */
export function ownsKey({ key, target }) {
  if (target.closest(TYPED)) return true;
  if (target.closest("input[type=range], input[type=radio]") && SLIDES.test(key)) return true;
  if (key === " ") return Boolean(target.closest("button, a, summary, input:not([type=range])"));
  return (key === "Home" || key === "End") && Boolean(target.closest("ol[tabindex]"));
}
