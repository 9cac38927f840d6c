// Numbers and marks beside a text field that doesn't wrap: only what is in sight is drawn.

export class Lines {
  constructor(area) {
    this.area = area;
    const editor = area.closest(".editor");
    this.numbers = editor.querySelector(".line-numbers").appendChild(document.createElement("div"));
    this.marks = editor.querySelector(".marks");
    this.problems = [];
    const style = getComputedStyle(area);
    this.row = parseFloat(style.lineHeight);
    this.pad = parseFloat(style.paddingTop);
    area.addEventListener("scroll", () => this.#draw());
    area.addEventListener("input", () => this.refresh());
    new ResizeObserver(() => this.#draw()).observe(area);
    this.refresh();
  }

  /** The text has changed. */
  refresh() {
    this.text = this.area.value.split("\n");
    this.#draw();
  }

  /** Mark `{line, column, length}`, counted in characters from 1. */
  mark(problems) {
    this.problems = problems;
    this.#draw();
  }

  /** Select what a problem is about and bring it into view. */
  go({ line, column, length }) {
    const before = this.text.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    const [start, end] = this.#units({ line, column, length });
    this.area.focus({ preventScroll: false });
    this.area.setSelectionRange(before + start, before + end);
    this.area.scrollTop = Math.max((line - 1) * this.row - this.area.clientHeight / 3, 0);
    this.area.scrollLeft = 0;
    this.#draw();
    const mark = this.marks.querySelector(`[data-line="${line}"] u`);
    const right = mark ? mark.parentElement.offsetLeft + mark.offsetLeft + 80 : 0;
    if (right > this.area.clientWidth) this.area.scrollLeft = right - this.area.clientWidth / 2;
  }

  /** Line and column of the caret. */
  caret() {
    const before = this.area.value.slice(0, this.area.selectionStart).split("\n");
    return { line: before.length, column: [...before.at(-1)].length + 1 };
  }

  /** Characters as the server counts them are code points, here they are UTF-16 units. */
  #units({ line, column, length }) {
    const points = [...(this.text[line - 1] ?? "")];
    const start = points.slice(0, column - 1).join("").length;
    return [start, start + points.slice(column - 1, column - 1 + length).join("").length];
  }

  #draw() {
    const { scrollTop, scrollLeft, clientHeight } = this.area;
    const first = Math.max(Math.floor((scrollTop - this.pad) / this.row), 0);
    const last = Math.min(first + Math.ceil(clientHeight / this.row) + 1, this.text.length);
    const wrong = new Set(this.problems.map((problem) => problem.line));
    const numbers = [];
    const marks = [];
    for (let line = first + 1; line <= last; line++) {
      const number = document.createElement(wrong.has(line) ? "b" : "span");
      number.textContent = line;
      numbers.push(number);
      for (const problem of this.problems) {
        if (problem.line === line) marks.push(this.#marked(problem, scrollTop, scrollLeft));
      }
    }
    this.numbers.replaceChildren(...numbers);
    this.numbers.style.transform = `translateY(${this.pad + first * this.row - scrollTop}px)`;
    this.numbers.parentElement.style.width = `${Math.max(String(this.text.length).length, 2) + 3}ch`;
    this.marks.replaceChildren(...marks);
  }

  #marked(problem, scrollTop, scrollLeft) {
    const [start, end] = this.#units(problem);
    const text = this.text[problem.line - 1] ?? "";
    const line = document.createElement("p");
    line.dataset.line = problem.line;
    line.style.top = `${this.pad + (problem.line - 1) * this.row - scrollTop}px`;
    const span = line.appendChild(document.createElement("span"));
    span.style.transform = `translateX(${-scrollLeft}px)`;
    span.append(text.slice(0, start));
    span.appendChild(document.createElement("u")).textContent = text.slice(start, end);
    return line;
  }
}
