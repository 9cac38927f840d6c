// What the figures show, kept from frames: a whole one replaces it, a delta changes it. No drawing here.

import { mergeHashes, mergeTables } from "./merge.js";

const PANELS = ["queue", "tables", "hashes", "usage"];

export class Model {
  constructor() {
    this.at = null;
    this.branch = null;
  }

  /** Whether `data` fits on what is here. */
  accepts(data) {
    return data.from === null || data.from === undefined
      || (this.pool && data.from === this.at && data.branch === this.branch);
  }

  /** Take a frame's data; returns the names of the panels that have to be drawn again. */
  apply(data) {
    const whole = data.from === null || data.from === undefined;
    const touched = new Set(PANELS.filter((name) => name in data && !same(this[name], data[name])));
    if (whole) this.pool = new Pool(data.pool.num_blocks, data.pool.block_size);
    this.requests = whole ? data.requests : [...this.requests, ...(data.requests_added ?? [])];
    if (whole) this.groups = data.groups;
    if (data.queue) this.queue = data.queue;
    this.usage = data.usage;
    if (data.tables) this.tables = whole ? data.tables : mergeTables(this.tables, data.tables, data.tables_gone);
    if (data.hashes) this.hashes = whole ? data.hashes : mergeHashes(this.hashes, data.hashes);
    this.alt = { ...this.alt, ...data.alt };
    this.at = data.at;
    this.branch = data.branch;
    const cleared = this.pool.clearChanged();
    if (data.pool) this.pool.put(data.pool.cells);
    this.pool.markLost(this.queue.out);
    if (whole || cleared || data.pool?.cells.length) touched.add("pool");
    return touched;
  }

  /** Everything as plain data, to compare two models. */
  plain() {
    const { at, branch, requests, groups, queue, tables, hashes, usage, alt } = this;
    return { at, branch, requests, groups, queue, tables, hashes, usage, alt, pool: this.pool.plain() };
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
      this.flags[block] = (hashed ? HASHED : 0) | (changed ? CHANGED : 0);
      this.owners[2 * block] = first;
      this.owners[2 * block + 1] = second;
      if (changed) this.changed.push(block);
    }
  }

  /** A hashed block that was popped lost its hash in this step. */
  markLost(left) {
    for (const { blocks, hashed, why } of left) {
      if (!why.startsWith("popped")) continue;
      blocks.forEach((block, i) => { if (hashed[i]) this.flags[block] |= LOST; });
    }
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

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
