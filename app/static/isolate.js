// What somebody wrote, as a part of a plain text: it turns no other word. The server does the same (words.py).

const TURNS = /[\u0590-\u08ff\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const [FIRST_STRONG, POP] = ["\u2068", "\u2069"];

export function isolated(text) {
  if (!TURNS.test(text)) return text;
  let depth = 0;
  let kept = "";
  for (const letter of text) {
    if (letter === POP && !depth) continue;
    if (/[\u2066-\u2068]/.test(letter)) depth += 1;
    if (letter === POP) depth -= 1;
    kept += letter;
  }
  return `${FIRST_STRONG}${kept}${POP.repeat(depth + 1)}`;
}
