// Asks the server how it is doing, every second, and shows it. What comes from requests is hostile: it becomes text
// (textContent), never markup.

import { pollCache } from "./cache.js";
import { ask, byId, bytes, count, fillTiles, PATIENCE, PERIOD, setText } from "./page.js";
import { Plot } from "./plot.js";

const CERTIFICATES_PERIOD = 60_000;
const TASKS_PERIOD = 2000;
const MOST_THREADS = 200;
const MOST_MOMENTS = 300;
const STATES = ["busy", "stuck", "backoff", "starting", "leaving", "idle"];

const shedOf = (traffic) => Object.values(traffic.shed).reduce((sum, count) => sum + count, 0);

const PERCENTILES = [{ name: "p50", ink: "busy" }, { name: "p90", ink: "starting" }, { name: "p99", ink: "stuck" }];

const plots = {
  requests: new Plot(byId("plot-requests"), { format: count, series: [{ name: "requests", ink: "busy" }] }),
  latency: new Plot(byId("plot-latency"), { format: milliseconds, series: PERCENTILES }),
  wait: new Plot(byId("plot-wait"), { format: milliseconds, series: PERCENTILES }),
  queue: new Plot(byId("plot-queue"), { format: count, series: [{ name: "waiting", ink: "starting" }] }),
  threads: new Plot(byId("plot-threads"), {
    format: count,
    stacked: true,
    series: STATES.map((name) => ({ name, ink: name })),
  }),
  trouble: new Plot(byId("plot-trouble"), {
    format: count,
    series: [{ name: "refused", ink: "stuck" }, { name: "too late", ink: "starting" }, { name: "errors", ink: "leaving" }],
  }),
};

// The pool that tiles and plots are of; the last answer; and what the plots have seen: figures of all pools, so that
// another can be chosen.
let chosen = null;
let last = null;
let threadsNow = [];
let history = [];
let answeredAt = Date.now();

async function poll() {
  try {
    const [statistics, list] = await Promise.all([ask("/regent/statistics"), ask("/regent/threads")]);
    answeredAt = Date.now();
    answered(statistics, list);
  } catch (error) {
    silent(error);
  }
  setTimeout(poll, PERIOD);
}

async function pollCertificates() {
  try {
    showCertificates(await ask("/regent/certificates"));
  } catch {
    // That the server is silent, poll() shows.
  }
  setTimeout(pollCertificates, CERTIFICATES_PERIOD);
}

async function pollTasks() {
  try {
    showTasks(await ask("/regent/tasks"));
  } catch {
    // That the server is silent, poll() shows.
  }
  setTimeout(pollTasks, TASKS_PERIOD);
}

function answered(statistics, list) {
  byId("silence").hidden = true;
  document.body.classList.remove("stale");
  last = statistics;
  if (!statistics.pools.some(({ name }) => name === chosen)) chosen = busiest(statistics.pools);
  showAbout(statistics);
  showPools(statistics.pools);
  record({ time: Date.now() / 1000, window: statistics.window_ms / 1000, pools: statistics.pools });
  showTiles(statistics);
  showThreads(list);
  showRoutes(statistics);
  showCircuits(statistics);
  showScaling(statistics);
}

function silent(error) {
  const time = new Date(answeredAt).toLocaleTimeString();
  byId("silence").textContent =
    `The server does not answer (${error.message}). What is shown is from ${time}; this page keeps asking.`;
  byId("silence").hidden = false;
  document.body.classList.add("stale");
  record({ time: Date.now() / 1000, window: 1, pools: [] });
}

function busiest(pools) {
  return pools.reduce((best, pool) => (!best || pool.requests > best.requests ? pool : best), null)?.name ?? null;
}

function showAbout({ version, uptime_ms, php }) {
  const parts = [version, ...(php ? [`PHP ${php.version}`] : []), `up for ${duration(uptime_ms)}`];
  byId("about").textContent = parts.join(", ");
  byId("old-php").hidden = php?.state !== "below";
  if (php?.state === "below") {
    byId("old-php").textContent = `PHP ${php.version} has holes that are known and run an attacker's code. `
      + `The lowest version without is ${php.floor}; "regent doctor" says what mends it.`;
  }
}

function showPools(pools) {
  const nav = byId("pools");
  nav.hidden = pools.length < 2;
  while (nav.children.length < pools.length) {
    const button = nav.appendChild(document.createElement("button"));
    button.addEventListener("click", () => choose(button.textContent));
  }
  while (nav.children.length > pools.length) nav.lastChild.remove();
  pools.forEach((pool, index) => {
    setText(nav.children[index], pool.name);
    nav.children[index].title = pool.worker ?? "classic requests";
    nav.children[index].setAttribute("aria-pressed", String(pool.name === chosen));
  });
}

function choose(name) {
  chosen = name;
  Object.values(plots).forEach((plot) => plot.clear());
  history.forEach(plotMoment);
  showPools(last.pools);
  showTiles(last);
}

function record(moment) {
  history.push(moment);
  history = history.slice(-MOST_MOMENTS);
  plotMoment(moment);
}

function plotMoment({ time, window, pools }) {
  const pool = pools.find(({ name }) => name === chosen);
  const push = (plot, values) => plot.push(time, pool ? values(pool) : plot.series.map(() => null));
  push(plots.requests, ({ requests }) => [requests / window]);
  push(plots.latency, ({ total }) => percentiles(total));
  push(plots.wait, ({ queue }) => percentiles(queue));
  push(plots.queue, ({ queued }) => [queued]);
  push(plots.threads, ({ threads }) => STATES.map((state) => threads[state]));
  push(plots.trouble, (traffic) =>
    [shedOf(traffic), traffic.deadline_misses, traffic.errors].map((events) => events / window));
}

function percentiles(times) {
  return times ? [times.p50_ms, times.p90_ms, times.p99_ms] : [null, null, null];
}

function showTiles({ pools, window_ms }) {
  const pool = pools.find(({ name }) => name === chosen);
  if (!pool) return;
  const { queue, total, threads, queued, oldest_wait_ms, least, most } = pool;
  const all = STATES.reduce((sum, state) => sum + threads[state], 0);
  const reasons = Object.entries(pool.shed).filter(([, events]) => events > 0);
  const events = (name, number, title) => ({ name, value: count(number), title, bad: number > 0 });
  fillTiles("tiles", [
    { name: "Requests/s", value: count(pool.requests / (window_ms / 1000)) },
    { name: "Median", value: total ? milliseconds(total.p50_ms) : "–" },
    { name: "p99", value: total ? milliseconds(total.p99_ms) : "–" },
    { name: "p99 in queue", value: queue ? milliseconds(queue.p99_ms) : "–" },
    { name: queued ? `Waiting, ${milliseconds(oldest_wait_ms)}` : "Waiting", value: count(queued) },
    {
      name: "Threads busy",
      value: `${threads.busy + threads.stuck} of ${all}`,
      title: `${least} to ${most} threads; ${threads.stuck} are stuck, ${threads.backoff} wait after a failure`,
      bad: threads.stuck + threads.backoff > 0,
    },
    events("Refused", shedOf(pool), reasons.map(([reason, number]) => `${reason}: ${number}`).join(", ")),
    events("Too late", pool.deadline_misses),
    events("Errors", pool.errors),
  ]);
}

// Those that need attention first.
function showThreads({ ThreadDebugStates: threads, ReservedThreadCount: reserved }) {
  const order = ["stuck", "backoff", "busy", "leaving", "starting", "idle"];
  const rank = ({ Activity }) => order.indexOf(Activity);
  threads.sort((a, b) => rank(a) - rank(b) || b.RunningMilliseconds - a.RunningMilliseconds || a.Index - b.Index);
  threadsNow = threads;
  const left = threads.length - MOST_THREADS;
  byId("threads-summary").textContent =
    `${threads.length}, ${reserved} more possible${left > 0 ? `; ${left} are not listed` : ""}`;
  fill("threads", threads.slice(0, MOST_THREADS).map((thread) => [
    [thread.Index, "number minor"],
    [thread.Pool],
    [thread.Activity, `state-${thread.Activity}`],
    [since(thread), "number"],
    [request(thread), "wide uri"],
    hasStack(thread) ? ["Stack", "", thread.Index] : [""],
    [count(thread.RequestCount), "number minor"],
    [bytes(thread.MemoryUsage), "number minor"],
  ]));
}

function request({ IsBusy, CurrentMethod, CurrentURI }) {
  return IsBusy ? `${CurrentMethod} ${CurrentURI}` : "";
}

// Whether it runs a script. The threads of native modules have numbers of their own, which may be the same.
function hasStack({ IsBusy, Pool }) {
  return IsBusy && last.pools.some(({ name, engine }) => name === Pool && engine === "php");
}

// What the thread of the address's fragment (#stack=3) is at. Its request may have ended since it was listed.
async function showStack() {
  const { hash } = location;
  const index = /^#stack=(\d{1,5})$/.exec(hash)?.[1];
  const dialog = byId("stack-dialog");
  if (index === undefined) return dialog.close();
  const thread = threadsNow.find((thread) => String(thread.Index) === index && hasStack(thread));
  setText(byId("stack-title"), `Thread ${index} of PHP`);
  setText(byId("stack-request"), thread ? request(thread) : "");
  if (!dialog.open) {
    setText(byId("stack"), "");
    dialog.showModal();
  }
  let text;
  try {
    const { stack } = await ask(`/regent/threads/stack?index=${index}`);
    text = stack.join("\n") || "It runs no script.";
  } catch (error) {
    text = error.message;
  }
  // Another may have been asked for meanwhile.
  if (location.hash === hash) setText(byId("stack"), text);
}

function watchStacks() {
  byId("threads").addEventListener("click", ({ target }) => {
    const index = target.closest("button")?.value;
    if (index !== undefined) location.hash = `stack=${index}`;
  });
  byId("stack-again").addEventListener("click", showStack);
  byId("stack-dialog").addEventListener("close", () => window.history.replaceState(null, "", location.pathname));
  window.addEventListener("hashchange", showStack);
  if (location.hash) showStack();
}

// How long a thread has been doing what it does.
function since({ IsBusy, IsWaiting, RunningMilliseconds, WaitingSinceMilliseconds }) {
  if (IsBusy) return duration(RunningMilliseconds);
  return IsWaiting ? duration(WaitingSinceMilliseconds) : "";
}

function showRoutes({ routes, window_ms }) {
  const seconds = window_ms / 1000;
  document.querySelector(".window").textContent = `last ${Math.round(seconds)} s`;
  const trouble = (events) => [count(events), events > 0 ? "number bad" : "number"];
  const time = (times, part, className = "number") => [times ? milliseconds(times[part]) : "–", className];
  fill("routes", routes.map((route) => [
    [route.route, "wide uri"],
    [route.pool, "minor"],
    lane(route.lane),
    [count(route.requests / seconds), "number"],
    time(route.total, "p50_ms"),
    time(route.total, "p99_ms"),
    time(route.total, "max_ms", "number minor"),
    time(route.execution, "p50_ms", "number minor"),
    time(route.execution, "p99_ms", "number minor"),
    time(route.cpu, "p50_ms", "number minor"),
    time(route.cpu, "p99_ms", "number minor"),
    trouble(route.errors),
    trouble(shedOf(route)),
    trouble(route.deadline_misses),
    [route.deadline_ms === null ? "–" : milliseconds(route.deadline_ms), "number minor"],
  ]));
}

// Of a slow route, or one whose lane is pinned: what it has of what it may have, and how many wait for that.
function lane(limits) {
  if (!limits) return ["open"];
  const { limit, inside, waiting } = limits;
  return [`${inside} of ${limit}${waiting > 0 ? `, ${count(waiting)} wait` : ""}`, waiting > 0 ? "bad" : ""];
}

function showScaling({ scale_events, generations }) {
  const time = (at) => new Date(at).toLocaleTimeString();
  fill("scaling", scale_events.map(({ at_unix_ms, pool, from, to, reason }) =>
    [[time(at_unix_ms)], [pool], [`${from} → ${to}`, "number"], [reason, "wide"]]));
  const engines = { php: "PHP", native: "native modules" };
  fill("engines", generations.map(({ engine, number, started_at_unix_ms, reason }) =>
    [[engines[engine]], [number, "number"], [new Date(started_at_unix_ms).toLocaleString()], [reason, "wide"]]));
}

function showCircuits({ circuits }) {
  byId("circuits-section").hidden = circuits.length === 0;
  fill("circuits", circuits.map(({ pool, route, script, state, left_ms }) =>
    [[pool], [route ?? "all routes"], [script, "wide"], [state, "bad"], [Math.ceil(left_ms / 1000), "number"]]));
}

function showCertificates({ certificates }) {
  byId("certificates-section").hidden = certificates.length === 0;
  fill("certificates", certificates.map(({ name, issuer, source, days_left, last_error }) =>
    [[name], [issuer, "minor"], [source, "minor"], [days_left ?? "none yet", "number"], [last_error ?? "", "wide"]]));
}

function showTasks({ tasks }) {
  byId("tasks-section").hidden = tasks.length === 0;
  fill("tasks", tasks.map((task) => [
    [task.task],
    [task.number, "number minor"],
    [task.state, task.state === "running" ? "state-busy" : ""],
    [time(task.started_at_unix_ms ?? task.next_start_unix_ms)],
    [count(task.runs), "number"],
    [count(task.failures), task.failures > 0 ? "number bad" : "number"],
    lastRun(task.last),
    ["", "actions"],
  ]));
  // What each row's task can be told; of several processes, the first row has it.
  tasks.forEach(({ task, number, state }, index) => {
    const cell = byId("tasks").tBodies[0].rows[index].lastChild;
    const orders = state === "running" ? ["restart", "stop"] : ["run", "stop"];
    const shown = number === 1 ? orders.filter((order) => order !== "stop" || state !== "stopped") : [];
    showOrders(cell, task, shown);
  });
}

function showOrders(cell, task, orders) {
  const wanted = JSON.stringify([task, orders]);
  if (cell.dataset.orders === wanted) return;
  cell.dataset.orders = wanted;
  cell.replaceChildren(...orders.map((order) => {
    const button = document.createElement("button");
    button.textContent = order;
    button.addEventListener("click", () => tell(button, task, order));
    return button;
  }));
}

async function tell(button, task, order) {
  button.disabled = true;
  try {
    const target = `/regent/tasks/${order}?task=${encodeURIComponent(task)}`;
    const answer = await fetch(target, { method: "POST", signal: AbortSignal.timeout(PATIENCE) });
    button.title = answer.ok ? "" : (await answer.json()).error;
    showTasks(await ask("/regent/tasks"));
  } catch (error) {
    button.title = error.message;
  }
  button.disabled = false;
}

function lastRun(run) {
  if (!run) return ["none yet", "wide minor"];
  const { started_at_unix_ms: started, ended_at_unix_ms: ended, end, code, signal } = run;
  const how = { succeeded: "ended", failed: code === null ? `signal ${signal}` : `status ${code}`, told: "was told to end" };
  const text = `${how[end] ?? "could not be started"}, ${time(ended)}, after ${duration(ended - started)}`;
  return [text, end === "failed" || end === "not_started" ? "wide bad" : "wide"];
}

function time(milliseconds) {
  return milliseconds === null ? "" : new Date(milliseconds).toLocaleString();
}

// Fills a table with rows of [text, class], or [text, class, value] for a button; rows and cells that are there are kept, so that a selection survives.
function fill(id, rows) {
  const body = byId(id).tBodies[0];
  if (rows.length === 0) {
    body.replaceChildren();
    const cell = body.insertRow().insertCell();
    cell.colSpan = 99;
    cell.className = "empty";
    cell.textContent = "none";
    return;
  }
  if (body.rows[0]?.cells.length !== rows[0].length) body.replaceChildren();
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, index) => fillRow(body.rows[index] ?? body.insertRow(), cells));
}

function fillRow(row, cells) {
  cells.forEach(([text, className = "", value = null], index) => {
    const cell = row.cells[index] ?? row.insertCell();
    if (className !== "actions") setText(value === null ? cell : button(cell, value), String(text));
    if (cell.className !== className) cell.className = className;
  });
}

function button(cell, value) {
  if (!cell.firstElementChild) cell.replaceChildren(document.createElement("button"));
  cell.firstElementChild.value = value;
  return cell.firstElementChild;
}

function milliseconds(value) {
  if (value >= 1000) return `${(value / 1000).toFixed(value >= 10000 ? 0 : 1)} s`;
  return value >= 10 || value === 0 ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`;
}

function duration(value) {
  const seconds = value / 1000;
  if (seconds < 60) return milliseconds(value);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

watchStacks();
poll();
pollCertificates();
pollTasks();
pollCache();
