// The tokens of tokens.css as resolved colours, for Plotly, which cannot read custom properties.

const NAMES = ["page", "surface", "sunk", "ink", "ink2", "ink3", "line", "line2", "accent", "accentfill"];
const PATTERNS = [".", "/", "\\", "|", "-", "+", "x", ""];
const PARTS = ["line", "edge", "fill", "tex", "text"];

let current = null;

export function theme() {
  current ??= read();
  return current;
}

/** Light, dark, or back to the system's. Returns whether it is dark now. */
export function toggleTheme() {
  current = null; // a page without figures doesn't watch for changes
  const next = theme().dark ? "light" : "dark";
  current = null;
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("theme", next); } catch { /* not kept, still shown */ }
  return next === "dark";
}

/** Calls back after the theme changed, by the switch or by the system. */
export function onThemeChange(callback) {
  const changed = () => { current = null; callback(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  new MutationObserver(changed).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

function read() {
  const probe = document.body.appendChild(document.createElement("i"));
  const style = getComputedStyle(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return style.color;
  };
  const tokens = Object.fromEntries(NAMES.map((name) => [name, colour(name)]));
  tokens.hues = PATTERNS.map((pattern, i) => ({
    pattern,
    ...Object.fromEntries(PARTS.map((part) => [part, colour(`h${i + 1}-${part}`)])),
  }));
  const root = getComputedStyle(document.documentElement);
  tokens.sans = root.getPropertyValue("--sans").trim();
  tokens.mono = root.getPropertyValue("--mono").trim();
  tokens.dark = luminance(tokens.page) < 128;
  tokens.veil = withAlpha(tokens.page, tokens.dark ? 0.16 : 0.34);
  tokens.heavyVeil = withAlpha(tokens.page, 0.62);
  probe.remove();
  return tokens;
}

function channels(rgb) {
  return rgb.match(/[\d.]+/g).slice(0, 3).map(Number);
}

function luminance(rgb) {
  const [r, g, b] = channels(rgb);
  return 0.3 * r + 0.59 * g + 0.11 * b;
}

export function withAlpha(rgb, alpha) {
  return `rgba(${channels(rgb).join(", ")}, ${alpha})`;
}

/** `over` seen through `alpha` of `veil`: what a veiled cell looks like, as one colour. */
export function mix(over, veil, alpha) {
  const [a, b] = [channels(over), channels(veil)];
  return `rgb(${a.map((value, i) => Math.round(value * (1 - alpha) + b[i] * alpha)).join(", ")})`;
}
