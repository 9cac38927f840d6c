// Many small forms as one SVG path, for one shape of a figure's layout: one element, however many cells.

export class Line {
  parts = [];

  line(points, close = "") {
    let text = "M";
    for (let i = 0; i < points.length; i += 1) text += `${i ? "L" : ""}${round(points[i][0])},${round(points[i][1])}`;
    this.parts.push(text + close);
  }

  polygon(points) {
    this.line(points, "Z");
  }

  /** A rectangle with its corners cut by `r`: as good as round at this size. */
  rectangle(x, y, w, h, r) {
    this.polygon(r ? octagon(x, y, w, h, r) : box(x, y, w, h));
  }

  /** A ring with round corners. */
  ring(x, y, w, h, r) {
    const s = r * 0.3;
    this.polygon([
      [x + r, y], [x + w - r, y], [x + w - s, y + s], [x + w, y + r], [x + w, y + h - r], [x + w - s, y + h - s],
      [x + w - r, y + h], [x + r, y + h], [x + s, y + h - s], [x, y + h - r], [x, y + r], [x + s, y + s],
    ]);
  }

  circle(x, y, r) {
    this.polygon(Array.from({ length: 16 }, (_, i) => [x + r * Math.cos((i * Math.PI) / 8), y + r * Math.sin((i * Math.PI) / 8)]));
  }
}

export function box(x, y, w, h) {
  return [[x, y], [x + w, y], [x + w, y + h], [x, y + h]];
}

function octagon(x, y, w, h, r) {
  return [
    [x + r, y], [x + w - r, y], [x + w, y + r], [x + w, y + h - r],
    [x + w - r, y + h], [x + r, y + h], [x, y + h - r], [x, y + r],
  ];
}

function round(value) {
  return Math.round(value * 10) / 10;
}
