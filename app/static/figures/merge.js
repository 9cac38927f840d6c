// Changes of the block tables and the hashed blocks, put on top of the moment before.

const TABLE_EDGE = 200; // the server tells so many first and last entries of a long table

/** Cells are [entry, block, kind, filled, changed, hashed]. */
export function mergeTables(tables, changes, gone = []) {
  const kept = new Map();
  for (const table of tables) kept.set(keyOf(table.request, table.group), { ...table, cells: table.cells.map(unringed) });
  for (const [request, group] of gone) kept.delete(keyOf(request, group));
  for (const { whole, cells, ...head } of changes) {
    const key = keyOf(head.request, head.group);
    const before = whole ? [] : kept.get(key)?.cells ?? [];
    kept.set(key, { ...head, cells: mergeCells(before, cells, head.total) });
  }
  return [...kept.values()].sort((a, b) => a.request - b.request || a.group - b.group);
}

function unringed(cell) {
  if (!cell[4]) return cell;
  const copy = cell.slice();
  copy[4] = 0;
  return copy;
}

function mergeCells(before, changes, total) {
  const cells = new Map(before.map((cell) => [cell[0], cell]));
  for (const cell of changes) cells.set(cell[0], cell);
  const told = (entry) => entry < total && (entry < TABLE_EDGE || entry >= total - TABLE_EDGE);
  return [...cells.values()].filter(([entry]) => told(entry)).sort((a, b) => a[0] - b[0]);
}

function keyOf(request, group) {
  return `${request}/${group}`;
}

/** Points are appended where they follow on what is known; what is known already stays. */
export function mergeSeries(series, news) {
  if (news.from === undefined || news.from === null) return news;
  if (!series || series.end !== news.from) return series;
  const merged = { ...series, end: news.end };
  for (const [name, points] of Object.entries(news)) {
    if (Array.isArray(points)) merged[name] = [[...series[name][0], ...points[0]], [...series[name][1], ...points[1]]];
  }
  return merged;
}

/** A chain's cells are [block, live, changed, copies]; chains are told apart by their id. */
export function mergeHashes(hashes, { total, chains, gone = [] }) {
  const kept = new Map();
  for (const chain of hashes.chains) kept.set(chain.id, { ...chain, cells: chain.cells.map(([block, live, , copies]) => [block, live, 0, copies]) });
  for (const id of gone) kept.delete(id);
  for (const chain of chains) kept.set(chain.id, chain);
  return { total, chains: [...kept.values()].sort((a, b) => a.id - b.id) };
}
