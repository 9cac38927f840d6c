// Changes of the block tables and the hashed blocks, put on top of the moment before.

const TABLE_EDGE = 200; // the server tells so many first and last entries of a long table

/** Cells are [entry, block, kind, filled, changed, hashed]. */
export function mergeTables(tables, changes, gone = []) {
  const kept = new Map();
  for (const table of tables) kept.set(keyOf(table.request, table.group), unringed(table));
  for (const [request, group] of gone) kept.delete(keyOf(request, group));
  for (const { whole, cells, ...head } of changes) {
    const key = keyOf(head.request, head.group);
    const before = whole ? [] : kept.get(key)?.cells ?? [];
    kept.set(key, { ...head, cells: mergeCells(before, cells, head.total) });
  }
  return [...kept.values()].sort((a, b) => a.request - b.request || a.group - b.group);
}

/** A table in which nothing is ringed: itself, where nothing was. */
function unringed(table) {
  if (!table.cells.some((cell) => cell[4])) return table;
  return { ...table, cells: table.cells.map((cell) => (cell[4] ? cell.with(4, 0) : cell)) };
}

/** Both are in order of entries, and what changes stands mostly at the end. */
function mergeCells(before, changes, total) {
  const cells = before.slice();
  for (const cell of changes) {
    let at = cells.length;
    while (at && cells[at - 1][0] >= cell[0]) at -= 1;
    cells.splice(at, cells[at]?.[0] === cell[0] ? 1 : 0, cell);
  }
  return cells.filter(([entry]) => entry < total && (entry < TABLE_EDGE || entry >= total - TABLE_EDGE));
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
