// What the figures show, kept from frames: a whole one replaces it, a delta changes it. No drawing here.

import { mergeHashes, mergeSeries, mergeTables } from "./merge.js";

const PANELS = ["queue", "tables", "hashes", "usage", "blocks"];

export class Model {
  constructor() {
    this.at = null;
    this.branch = null;
    this.series = null;
  }

  /** Whether `data` fits on what is here. */
  accepts(data) {
    return data.from === null || data.from === undefined
      || (this.pool && data.from === this.at && data.branch === this.branch);
  }

  /** Take a frame's data; returns the names of the panels that have to be drawn again. */
  apply(data) {
    const whole = data.from === null || data.from === undefined;
    const touched = new Set(PANELS.filter((name) => name in data && this.#differs(name, data, whole)));
    if (whole) this.pool = new Pool(data.pool.num_blocks, data.pool.block_size);
    this.requests = whole ? data.requests : [...this.requests, ...(data.requests_added ?? [])];
    if (whole) this.groups = data.groups;
    if (data.queue) this.queue = data.queue;
    this.usage = data.usage;
    this.blocks = data.blocks;
    if (data.series) this.series = mergeSeries(whole ? null : this.series, data.series);
    if (data.tables) this.tables = whole ? data.tables : mergeTables(this.tables, data.tables, data.tables_gone);
    if (data.hashes) this.hashes = whole ? data.hashes : mergeHashes(this.hashes, data.hashes);
    this.alt = { ...this.alt, ...data.alt };
    this.at = data.at;
    this.branch = data.branch;
    const cleared = this.pool.clearChanged();
    if (data.pool) this.pool.put(data.pool.cells);
    if (whole || cleared || data.pool?.cells.length) touched.add("pool");
    if (whole || this.series) touched.add("series"); // the needle moves
    return touched;
  }

  /** Whether a panel shows something else then; what comes as a change of a list does, unless the list is empty. */
  #differs(name, data, whole) {
    if (!whole && name === "tables") return this.tables.length + data.tables.length > 0;
    return (!whole && name === "hashes") || !same(drawn(name, this), drawn(name, data));
  }

  /** The blocks that a request holds: all that the pool tells of (a block names two holders) and its tables. */
  blocksOf(request) {
    const blocks = new Set();
    const { owners } = this.pool;
    for (let i = 0; i < owners.length; i += 1) if (owners[i] === request) blocks.add(i >> 1);
    for (const table of this.tables) if (table.request === request) for (const [, block] of table.cells) blocks.add(block);
    blocks.delete(0);
    return blocks;
  }

  /** An independent copy: whatever is put on top of one leaves the other as it is. */
  copy() {
    return Object.assign(new Model(), this, { pool: this.pool.copy() });
  }

  /** What a whole frame of this moment tells. */
  whole() {
    const { at, branch, requests, groups, queue, tables, hashes, usage, blocks, series, alt, pool } = this;
    const told = { num_blocks: pool.size, block_size: pool.blockSize, cells: pool.cells() };
    return { at, from: null, branch, requests, groups, pool: told, queue, tables, hashes, series, usage, blocks, alt };
  }

  /** Everything as plain data, to compare two models. */
  plain() {
    const { at, branch, requests, groups, queue, tables, hashes, usage, blocks, series, alt } = this;
    return { at, branch, requests, groups, queue, tables, hashes, usage, blocks, series, alt, pool: this.pool.plain() };
  }
}

/** State of every block in flat arrays: 100,000 of them are nothing. */
class Pool {
  constructor(size, blockSize) {
    this.size = size;
    this.blockSize = blockSize;
    this.refs = new Int32Array(size);
    this.flags = new Uint8Array(size);
    this.owners = new Int32Array(2 * size).fill(-1);
    this.changed = [];
  }

  clearChanged() {
    const count = this.changed.length;
    for (const block of this.changed) this.flags[block] &= HASHED;
    this.changed = [];
    return count > 0;
  }

  put(cells) {
    for (const [block, refs, hashed, changed, first = -1, second = -1] of cells) {
      this.refs[block] = refs;
      this.flags[block] = (hashed ? HASHED : 0) | (changed ? CHANGED : 0) | (changed === 2 ? LOST : 0);
      this.owners[2 * block] = first;
      this.owners[2 * block + 1] = second;
      if (changed) this.changed.push(block);
    }
  }

  /** As the server tells them: every block that is not free, unhashed and unchanged. */
  cells() {
    const cells = [];
    for (let block = 1; block < this.size; block += 1) {
      const flags = this.flags[block];
      if (!flags && !this.refs[block]) continue;
      const holders = [this.owners[2 * block], this.owners[2 * block + 1]].filter((holder) => holder >= 0);
      cells.push([block, this.refs[block], flags & HASHED ? 1 : 0, flags & LOST ? 2 : flags & CHANGED ? 1 : 0, ...holders]);
    }
    return cells;
  }

  copy() {
    const twin = Object.assign(Object.create(Pool.prototype), this);
    for (const name of ["refs", "flags", "owners", "changed"]) twin[name] = this[name].slice();
    return twin;
  }

  isHashed(block) { return (this.flags[block] & HASHED) !== 0; }
  isChanged(block) { return (this.flags[block] & CHANGED) !== 0; }
  lostHash(block) { return (this.flags[block] & LOST) !== 0; }

  /** null, free, cached or held. */
  kind(block) {
    if (block === 0) return "null";
    if (this.refs[block] > 0) return "held";
    return this.isHashed(block) ? "cached" : "free";
  }

  /** The hues of its holders, two at most. */
  hues(block) {
    const [first, second] = [this.owners[2 * block], this.owners[2 * block + 1]];
    if (first < 0) return [];
    return second < 0 ? [first % 8] : [first % 8, second % 8];
  }

  plain() {
    const join = (array) => Array.from(array).join(",");
    return { size: this.size, refs: join(this.refs), flags: join(this.flags), owners: join(this.owners) };
  }
}

const HASHED = 1;
const CHANGED = 2;
const LOST = 4;

/** What a figure draws of its data: the slots of the blocks are only words. */
function drawn(name, { [name]: data }) {
  return name === "blocks" && data ? { ...data, slots: null, was: { ...data.was, slots: null } } : data;
}

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
