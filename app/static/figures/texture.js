// A request's texture as strokes: the lines of a pattern, cut to a convex form. They run on from cell to cell.

const STEP = 5;
const DOT = 1.2;

/** Directions as normals: a line is where nx * x + ny * y = c. */
const NORMALS = {
  "/": [[1, 1]], "\\": [[1, -1]], "|": [[1, 0]], "-": [[0, 1]], "+": [[1, 0], [0, 1]], x: [[1, 1], [1, -1]],
};

/** Add the strokes of `pattern` inside the convex `points` to a Line. */
export function texture(line, points, pattern, step = STEP) {
  if (pattern === ".") dots(line, points, step);
  for (const normal of NORMALS[pattern] ?? []) hatch(line, points, normal, step);
}

function hatch(line, points, [nx, ny], step) {
  const space = nx && ny ? step * Math.SQRT2 : step;
  const values = points.map(([x, y]) => nx * x + ny * y);
  for (let c = Math.ceil((Math.min(...values) + 0.5) / space) * space; c < Math.max(...values) - 0.5; c += space) {
    const ends = [];
    for (let i = 0; i < points.length && ends.length < 2; i += 1) {
      const j = (i + 1) % points.length;
      const [a, b] = [values[i] - c, values[j] - c];
      if (a === b || a < 0 === b < 0) continue;
      const t = a / (a - b);
      ends.push([points[i][0] + t * (points[j][0] - points[i][0]), points[i][1] + t * (points[j][1] - points[i][1])]);
    }
    if (ends.length === 2) line.line(ends);
  }
}

/** Dots stand in the middle of a grid of their own, so that small cells have some too. */
function dots(line, points, step) {
  const [left, top] = points[0];
  const right = Math.max(...points.map(([x]) => x));
  const bottom = Math.max(...points.map(([, y]) => y));
  const slanted = points.length === 3;
  for (let y = top + 2.5; y < bottom - 1; y += step) {
    for (let x = left + 2.5; x < right - 1; x += step) {
      if (!slanted || inside(points, x, y)) line.line([[x - DOT / 2, y], [x + DOT / 2, y]]);
    }
  }
}

function inside(points, x, y) {
  let sign = 0;
  return points.every(([ax, ay], i) => {
    const [bx, by] = points[(i + 1) % points.length];
    const side = Math.sign((bx - ax) * (y - ay) - (by - ay) * (x - ax));
    if (!sign) sign = side;
    return side === sign;
  });
}
