// What the server's cache does, and what it is to forget.

import { ask, byId, bytes, count, fillTiles, PERIOD } from "./page.js";

// Polls that the hit rate is of.
const MOST_MOMENTS = 60;

let moments = [];

export async function pollCache() {
  try {
    show(await ask("/regent/cache"));
  } catch {
    // That the server is silent, another poll shows.
  }
  setTimeout(pollCache, PERIOD);
}

// Without a cache, there is no room for one.
function show(figures) {
  byId("cache-section").hidden = figures.limit === 0;
  if (figures.limit === 0) return;
  // The counts begin anew with a cache of another size.
  if (figures.misses < (moments.at(-1)?.misses ?? 0)) moments = [];
  moments = [...moments, figures].slice(-MOST_MOMENTS);
  byId("cache-summary").textContent = `last ${moments.length} s; the rest since the start`;
  const { urls, bytes: used, limit, stale, collapsed, passes, evictions, purged, disk } = figures;
  fillTiles("cache-tiles", [
    { name: "Hit rate", value: rate(moments[0], figures), title: "Of the requests that are for the cache" },
    { name: "Hit rate, ever", value: rate({ hits: 0, stale: 0, misses: 0 }, figures) },
    { name: `Memory of ${bytes(limit)}`, value: bytes(used), title: `${Math.round((100 * used) / limit)} %` },
    { name: "URLs", value: count(urls) },
    { name: "Waited for another", value: count(collapsed), title: "Requests that had the response of another's fetch" },
    { name: "Stale", value: count(stale), title: "Answered with what was over, while PHP made it anew or was down" },
    { name: "Passed", value: count(passes), title: "Requests that the cache was not for" },
    { name: "Evicted", value: count(evictions), title: "Responses that made room for others" },
    { name: "Purged", value: count(purged) },
    ...(disk.limit > 0 ? diskTiles(disk) : []),
  ]);
}

function diskTiles({ hits, files, bytes: used, limit, errors, dropped, working }) {
  const state = working ? `${Math.round((100 * used) / limit)} %` : "It cannot be used now: the log says why";
  return [
    { name: `Disk of ${bytes(limit)}`, value: working ? bytes(used) : "off", title: state },
    { name: "Files", value: count(files) },
    { name: "From the disk", value: count(hits), title: "Requests that were answered with what was read from it" },
    { name: "Not written", value: count(dropped), title: "Responses for which the disk was too slow, or failed" },
    { name: "Disk errors", value: count(errors) },
  ];
}

function rate(before, now) {
  const since = (name) => now[name] - before[name];
  const answered = since("hits") + since("stale");
  const all = answered + since("misses");
  return all > 0 ? `${Math.round((100 * answered) / all)} %` : "–";
}

byId("purge-what").addEventListener("change", ({ target }) => {
  const isAll = target.value === "all";
  byId("purge-value").hidden = isAll;
  byId("purge-value").required = !isAll;
});

byId("purge").addEventListener("submit", async (event) => {
  event.preventDefault();
  const what = byId("purge-what").value;
  const value = byId("purge-value").value.trim();
  if (what === "all" && !confirm("Forget all stored responses of all sites?")) return;
  const query = what === "all" ? "all=true" : `${what}=${encodeURIComponent(value)}`;
  const result = byId("purge-result");
  result.className = "";
  result.textContent = "…";
  try {
    const { purged } = await ask(`/regent/cache/purge?${query}`, "POST");
    result.textContent = purged === 1 ? "1 response is forgotten" : `${count(purged)} responses are forgotten`;
  } catch (error) {
    result.className = "bad";
    result.textContent = error.message;
  }
});
