'use strict';
{
  const { title, profile } = JSON.parse(document.getElementById('data').textContent);
  const ROW = 19, LEAST_WIDTH = 0.6, MOST_ROWS = 60;
  const $ = (id) => document.getElementById(id);
  const step = profile.looks > 0 ? profile.duration_milliseconds * 1000 / profile.looks : 0;
  const state = { measure: 'wall', path: '', search: '', root: null, tree: null };

  const label = (id, depth) => {
    const { name, file } = profile.functions[id];
    return name !== '' ? name : (depth === 0 ? '{main} ' : 'include ') + file.split('/').slice(-2).join('/');
  };
  const weight = (stack) => state.measure === 'wall' ? stack.samples * step : stack.cpu_microseconds;
  const percent = (part, whole) => (whole > 0 ? 100 * part / whole : 0).toFixed(1) + ' %';
  const time = (us) => us >= 1e6 ? (us / 1e6).toFixed(2) + ' s' : us >= 1e3 ? (us / 1e3).toFixed(1) + ' ms' : Math.round(us) + ' µs';

  /* A node for each function within each caller. */
  const node = (id, depth, parent) => ({ id, depth, parent, total: 0, self: 0, children: new Map() });
  const build = () => {
    const root = node(-1, -1, null);
    for (const stack of profile.stacks) {
      if (state.path !== '' && String(stack.path) !== state.path) continue;
      const w = weight(stack);
      if (w === 0) continue;
      let at = root;
      at.total += w;
      stack.functions.forEach((id, depth) => {
        if (!at.children.has(id)) at.children.set(id, node(id, depth, at));
        at = at.children.get(id);
        at.total += w;
      });
      at.self += w;
    }
    return root;
  };

  /* Warm colours for PHP code, cold ones for what is not; the same function always has the same. */
  const hue = (id) => {
    const { name, file } = profile.functions[id];
    let hash = 7;
    for (const c of name + file) hash = (hash * 31 + c.codePointAt(0)) % 997;
    return file === '' ? `hsl(${185 + hash % 35} 55% ${62 + hash % 9}%)` : `hsl(${18 + hash % 36} 85% ${60 + hash % 10}%)`;
  };
  const isFound = (id) => {
    const { name, file } = profile.functions[id];
    return state.search !== '' && (name + ' ' + file).toLowerCase().includes(state.search);
  };

  const bar = (at, left, width, height, isOutside) => {
    const element = document.createElement('button');
    element.className = 'bar' + (isOutside ? ' outside' : '') + (isFound(at.id) ? ' found' : '');
    element.style.left = left + 'px';
    element.style.width = Math.max(width - 1, 0.5) + 'px';
    element.style.bottom = height * ROW + 'px';
    element.style.background = hue(at.id);
    if (width > 24) element.textContent = label(at.id, at.depth);
    else element.style.padding = '0';
    element.addEventListener('click', () => { state.root = at; draw(); });
    element.addEventListener('pointermove', (event) => showTip(at, event));
    element.addEventListener('pointerleave', () => { $('tip').hidden = true; });
    return element;
  };

  const showTip = (at, event) => {
    const tip = $('tip'), { file } = profile.functions[at.id], whole = state.tree.total;
    const name = document.createElement('b');
    name.textContent = label(at.id, at.depth);
    tip.replaceChildren(name, `${time(at.total)}, ${percent(at.total, whole)} · itself ${time(at.self)}`);
    if (file !== '') tip.append(document.createElement('br'), file);
    tip.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = tip;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 8)) + 'px';
    tip.style.top = (event.clientY + 18 + height > innerHeight ? event.clientY - height - 8 : event.clientY + 18) + 'px';
  };

  const draw = () => {
    const root = state.root ?? state.tree, graph = $('graph'), all = graph.clientWidth;
    const bars = [];
    let height = 0, found = 0;
    const callers = [];
    for (let at = root; at !== null && at.depth >= 0; at = at.parent) if (at !== root) callers.unshift(at);
    callers.forEach((at) => bars.push(bar(at, 0, all, height++, true)));
    const place = (at, left, width, row, isWithinFound) => {
      if (width < LEAST_WIDTH) return;
      let inside = isWithinFound;
      if (at.depth >= 0) {
        bars.push(bar(at, left, width, row, false));
        height = Math.max(height, row + 1);
        if (isFound(at.id) && !isWithinFound) { found += at.total; inside = true; }
        row += 1;
      }
      let x = left;
      const children = [...at.children.values()].sort((a, b) => label(a.id, a.depth).localeCompare(label(b.id, b.depth)));
      for (const child of children) {
        const w = width * child.total / at.total;
        place(child, x, w, row, inside);
        x += w;
      }
    };
    if (root.total > 0) place(root, 0, all, height, false);
    graph.style.height = height * ROW + 'px';
    graph.replaceChildren(...bars);
    $('reset').hidden = state.root === null;
    $('found').textContent = state.search === '' ? '' : percent(found, root.total);
    table(root);
    $('hint').hidden = root.total === 0;
  };

  /* Of a function that calls itself the time counts once. */
  const table = (root) => {
    const rows = new Map(), above = new Set();
    const walk = (at) => {
      const isInner = above.has(at.id);
      if (at.depth >= 0) {
        const row = rows.get(at.id) ?? { id: at.id, depth: at.depth, self: 0, total: 0 };
        row.self += at.self;
        if (!isInner) row.total += at.total;
        rows.set(at.id, row);
        above.add(at.id);
      }
      for (const child of at.children.values()) walk(child);
      if (!isInner) above.delete(at.id);
    };
    walk(root);
    const sorted = [...rows.values()].sort((a, b) => b.self - a.self || b.total - a.total).slice(0, MOST_ROWS);
    $('functions').tBodies[0].replaceChildren(...sorted.map((row) => {
      const line = document.createElement('tr');
      const cell = (text, name) => { const td = line.insertCell(); td.textContent = text; td.className = name; };
      cell(percent(row.self, root.total), 'number');
      cell(percent(row.total, root.total), 'number');
      cell(label(row.id, row.depth), '');
      cell(profile.functions[row.id].file, '');
      return line;
    }));
  };

  const rebuild = () => { state.tree = build(); state.root = null; draw(); };

  const begin = () => {
    document.title = $('title').textContent = title;
    const samples = profile.stacks.reduce((sum, stack) => sum + stack.samples, 0);
    const cpu = profile.stacks.reduce((sum, stack) => sum + stack.cpu_microseconds, 0);
    $('summary').textContent = `${(profile.duration_milliseconds / 1000).toFixed(1)} s, ${profile.looks} looks, ` +
      `${samples} samples of busy threads: ${time(samples * step)} of wall time, ${time(cpu)} of CPU time` +
      (profile.lost > 0 ? `; ${profile.lost} samples more are not shown` : '') +
      (samples === 0 ? '. No thread was busy: send requests while the profile is taken.' : '');
    const byPath = new Map();
    for (const stack of profile.stacks) byPath.set(stack.path, (byPath.get(stack.path) ?? 0) + stack.samples);
    for (const [path, count] of [...byPath].sort((a, b) => b[1] - a[1])) {
      const option = document.createElement('option');
      option.value = path;
      option.textContent = `${profile.paths[path] || '(none)'}  (${percent(count, samples)})`;
      $('path').append(option);
    }
    for (const radio of document.getElementsByName('measure')) {
      radio.addEventListener('change', () => { state.measure = radio.value; rebuild(); });
    }
    $('path').addEventListener('change', () => { state.path = $('path').value; rebuild(); });
    $('search').addEventListener('input', () => { state.search = $('search').value.trim().toLowerCase(); draw(); });
    $('reset').addEventListener('click', () => { state.root = null; draw(); });
    $('controls').addEventListener('submit', (event) => event.preventDefault());
    addEventListener('resize', draw);
    rebuild();
  };
  begin();
}
