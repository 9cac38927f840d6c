// The one fact that matters now beside a panel's head, and the numbers beneath the bar of blocks.

export function writeFacts({ queue, hashes, usage, blocks }) {
  put(byId("queue-fact"), `${queue.free} free, ${queue.hashed} of them hashed`);
  put(byId("hashes-fact"), hashes.total ? `${hashes.total === 1 ? "1 hash" : `${hashes.total} hashes`}; a prefix that is shared is drawn once` : "");
  put(byId("usage-now"), usage.now.toFixed(2));
  put(byId("usage-was"), usage.was == null ? "" : `was ${usage.was.toFixed(2)}`);
  put(byId("usage-mark"), usage.mark);
  const list = byId("blocks-fact");
  for (const name of ["live", "cached", "empty"]) {
    put(list.querySelector(`[data-of=${name}]`), change(blocks.was[name], blocks[name]));
  }
  const { slots } = blocks;
  for (const one of list.querySelectorAll(".slots-of")) one.hidden = !slots;
  if (!slots) return;
  put(list.querySelector("[data-of=slots]"), `${slots.filled} of ${slots.held}`);
  put(list.querySelector("[data-of=occupancy]"), slots.all ? `${(100 * slots.filled / slots.all).toFixed(1)} %` : "–");
}

function change(was, now) {
  return was === now ? String(now) : `${was} → ${now}`;
}

function byId(id) {
  return document.getElementById(id);
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
