// Many small forms as one: points for a filled trace, or an SVG path for a shape of the layout. One element each, however many.

/** Polygons of one filled trace; `null` lifts the pen. */
export class Fill {
  x = [];
  y = [];

  polygon(points) {
    for (const [x, y] of points) { this.x.push(x); this.y.push(y); }
    this.x.push(points[0][0], null);
    this.y.push(points[0][1], null);
  }

  rectangle(x, y, w, h) {
    this.x.push(x, x + w, x + w, x, x, null);
    this.y.push(y, y, y + h, y + h, y, null);
  }
}

/** Lines of one shape. */
export class Line {
  parts = [];

  line(points, close = "") {
    this.parts.push(`M${points.map(([x, y]) => `${round(x)},${round(y)}`).join("L")}${close}`);
  }

  polygon(points) {
    this.line(points, "Z");
  }

  /** A rectangle with its corners cut by `r`: as good as round at this size. */
  rectangle(x, y, w, h, r) {
    if (r) {
      this.polygon([
        [x + r, y], [x + w - r, y], [x + w, y + r], [x + w, y + h - r],
        [x + w - r, y + h], [x + r, y + h], [x, y + h - r], [x, y + r],
      ]);
    } else {
      this.polygon([[x, y], [x + w, y], [x + w, y + h], [x, y + h]]);
    }
  }

  /** A ring with round corners. */
  ring(x, y, w, h, r) {
    const s = r * 0.3;
    this.polygon([
      [x + r, y], [x + w - r, y], [x + w - s, y + s], [x + w, y + r], [x + w, y + h - r], [x + w - s, y + h - s],
      [x + w - r, y + h], [x + r, y + h], [x + s, y + h - s], [x, y + h - r], [x, y + r], [x + s, y + s],
    ]);
  }
}

/** Texts at points, each with its own colour, size and anchor. */
export class Texts {
  x = [];
  y = [];
  text = [];
  colour = [];
  position = [];
  size = [];

  add(x, y, text, colour, position, size) {
    this.x.push(x);
    this.y.push(y);
    this.text.push(text);
    this.colour.push(colour);
    this.position.push(position);
    this.size.push(size);
  }
}

function round(value) {
  return Math.round(value * 10) / 10;
}
