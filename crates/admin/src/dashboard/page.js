// What the parts of the page have in common: asking the server, and showing what it says.

export const PERIOD = 1000;
export const PATIENCE = 3000;

export const byId = (id) => document.getElementById(id);

export async function ask(path, method = "GET") {
  const answer = await fetch(path, { method, signal: AbortSignal.timeout(PATIENCE) });
  if (answer.ok) return answer.json();
  const { error } = await answer.json().catch(() => ({}));
  throw new Error(error ?? `${path} was answered ${answer.status}`);
}

export function fillTiles(id, tiles) {
  const list = byId(id);
  while (list.children.length < tiles.length) {
    const tile = list.appendChild(document.createElement("div"));
    tile.append(document.createElement("dt"), document.createElement("dd"));
  }
  tiles.forEach(({ name, value, title = "", bad = false }, index) => {
    const tile = list.children[index];
    setText(tile.children[0], name);
    setText(tile.children[1], value);
    tile.title = title;
    tile.classList.toggle("bad", bad);
  });
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function count(value) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  return value >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

export function bytes(value) {
  return value >= 1 << 20 ? `${(value / (1 << 20)).toFixed(1)} MiB` : `${Math.round(value / 1024)} KiB`;
}
