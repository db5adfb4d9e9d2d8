<?php

/** The page of the demo. */

declare(strict_types=1);

use function Demo\facts;
use function Demo\html;

require __DIR__.'/../src/facts.php';

if ('/' !== strtok($_SERVER['REQUEST_URI'], '?') && '/index.php' !== strtok($_SERVER['REQUEST_URI'], '?')) {
    http_response_code(404);
}

session_start(['cookie_httponly' => true, 'cookie_samesite' => 'Lax']);
$_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
$_SESSION['since'] ??= time();
$visits = $_SESSION['visits'];
$since = $_SESSION['since'];
session_write_close();

$dashboard = 'http://localhost:'.($_SERVER['ADMIN_PORT'] ?? 2019).'/';

header('Content-Type: text/html; charset=UTF-8');
header('Cache-Control: no-store');
?>
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Regent serves PHP</title>
<link rel="icon" href="/assets/regent.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/style.css">
<script type="module" src="/assets/app.js"></script>
</head>
<body>
<header class="bar">
  <a class="brand" href="/"><img src="/assets/regent.svg" alt="" width="30" height="30">Regent</a>
  <nav aria-label="Sections">
    <a href="#race">Speed</a>
    <a href="#load">Load</a>
    <a href="#stream">Streaming</a>
    <a href="#upload">Uploads</a>
    <a href="#session">Session</a>
    <a href="#documents">Docs</a>
    <a href="<?= html($dashboard) ?>" target="_blank" rel="noopener">Dashboard ↗</a>
  </nav>
</header>

<main>
  <section class="hero">
<?php if (404 === http_response_code()) { ?>
    <p class="eyebrow">404</p>
    <h1>There is no <code><?= html(strtok($_SERVER['REQUEST_URI'], '?')) ?></code>, so <code>index.php</code> answers.</h1>
<?php } else { ?>
    <p class="eyebrow">It works</p>
    <h1>PHP, with a promise about time.</h1>
<?php } ?>
    <p class="lead">This page was just made by a PHP thread of Regent. The server beside it speaks HTTP and keeps its
      word when scripts hang, crash or leak, because PHP lives in a process of its own.</p>
    <dl class="facts">
<?php foreach (facts() as $fact) { ?>
      <div><dt><?= html($fact['label']) ?></dt><dd><?= html($fact['value']) ?></dd><dd class="note"><?= html($fact['note']) ?></dd></div>
<?php } ?>
    </dl>
  </section>

  <section class="card" id="race">
    <div class="head">
      <div>
        <h2>Classic against worker</h2>
        <p>The same small application, asked from this browser. It builds 4,000 routes when it starts: classic mode does
          so for every request, worker mode once, and then only answers.</p>
      </div>
      <div class="actions">
        <label class="select">Requests
          <select id="race-count"><option>200</option><option selected>400</option><option>1000</option></select>
        </label>
        <button id="race-run" type="button">Run again</button>
      </div>
    </div>
    <div class="lanes">
      <article class="lane classic" data-mode="classic">
        <h3><span class="dot"></span>Classic <code>/api.php</code></h3>
        <dl>
          <div><dt>median</dt><dd data-figure="p50">–</dd></div>
          <div><dt>99 %</dt><dd data-figure="p99">–</dd></div>
          <div><dt>requests/s</dt><dd data-figure="rate">–</dd></div>
        </dl>
        <p class="note" data-figure="note">&nbsp;</p>
      </article>
      <article class="lane worker" data-mode="worker">
        <h3><span class="dot"></span>Worker <code>/worker/</code></h3>
        <dl>
          <div><dt>median</dt><dd data-figure="p50">–</dd></div>
          <div><dt>99 %</dt><dd data-figure="p99">–</dd></div>
          <div><dt>requests/s</dt><dd data-figure="rate">–</dd></div>
        </dl>
        <p class="note" data-figure="note">&nbsp;</p>
      </article>
    </div>
    <figure class="chart">
      <svg id="race-chart" role="img" aria-label="Histogram of response times"></svg>
      <figcaption>How long each request took, as the browser saw it. Four at a time, the modes taking turns.</figcaption>
    </figure>
  </section>

  <section class="card" id="load">
    <div class="head">
      <div>
        <h2>Threads as needed</h2>
        <p>Two threads for each core to begin with, and more when requests wait and the CPU has time. A PHP script of
          this site sends the requests, since a browser opens six connections at most.</p>
      </div>
      <div class="actions"><a class="button" href="<?= html($dashboard) ?>" target="_blank" rel="noopener">Watch it in the dashboard ↗</a></div>
    </div>
    <div class="experiments">
      <article>
        <h3>A burst</h3>
        <p>50 requests at once. Each waits for 200 ms, as for a database. One bar is one request.</p>
        <svg class="plot" id="burst-chart" role="img" aria-label="When each request was sent and answered"></svg>
        <p class="result" id="burst-result" role="status">Not sent yet.</p>
        <div class="buttons"><button id="burst-run" type="button">Send 50 at once</button></div>
      </article>
      <article>
        <h3>A route that hangs</h3>
        <p>A fast request every 8 ms, one dot each: how long did it take? From the first second on, 80 requests beside
          them that hang for 1.5 s, more than there may be threads.</p>
        <svg class="plot" id="hang-chart" role="img" aria-label="How long fast requests took"></svg>
        <p class="result" id="hang-result" role="status">Not sent yet.</p>
        <div class="buttons">
          <button type="button" data-run="hang">With lanes</button>
          <button type="button" class="other" data-run="hang-without-lanes">Without lanes</button>
        </div>
      </article>
    </div>
  </section>

  <div class="pair">
    <section class="card" id="stream">
      <h2>Streaming</h2>
      <p>Forty server-sent events, one every 125 ms. Each leaves the moment the script calls <code>flush()</code>.</p>
      <ol class="dots" id="stream-dots" aria-label="Events that have arrived"></ol>
      <p class="result" id="stream-result" role="status">Nothing sent yet.</p>
      <button id="stream-run" type="button">Start the stream</button>
    </section>

    <section class="card" id="upload">
      <h2>Uploads</h2>
      <p>A body waits in memory or in a file until it is whole, so a slow client holds no thread. Here up to
        <?= html(ini_get('upload_max_filesize')) ?>.</p>
      <label class="drop" id="upload-drop">
        <input type="file" id="upload-file">
        <span>Drop a file here, or choose one</span>
      </label>
      <p class="result" id="upload-result" role="status">Its SHA-256 is compared on both sides.</p>
      <button id="upload-random" type="button">Send 8 MB of noise</button>
    </section>

    <section class="card" id="session">
      <h2>Session</h2>
      <p class="count"><strong><?= html(number_format($visits)) ?></strong>
        <span><?= 1 === $visits ? 'visit' : 'visits' ?> since <time datetime="<?= html(date('c', $since)) ?>"><?= html(date('H:i:s', $since)) ?></time></span></p>
      <p class="result">Kept by PHP, under a cookie that belongs to this browser.</p>
      <form method="post" action="/forget.php"><button type="submit">Forget me</button></form>
    </section>
  </div>

  <section id="documents" class="documents">
    <h2>Read on</h2>
    <ul>
      <li><a href="/README.md">README</a><span>what Regent is, and two commands to try it</span></li>
      <li><a href="/ARCHITECTURE.md">Architecture</a><span>two processes, one queue, and the life of a request</span></li>
      <li><a href="/docs/scaling.md">Scaling</a><span>how many threads there are, and why</span></li>
      <li><a href="/docs/deadlines.md">Deadlines</a><span>what is promised, and what an overload looks like</span></li>
      <li><a href="/docs/admin.md">Admin</a><span>dashboard, API and <code>regent top</code></span></li>
      <li><a href="/docs/configuration.md">Configuration</a><span>every directive of the Caddyfile</span></li>
      <li><a href="/docs/frankenphp.md">From FrankenPHP</a><span>what is the same, and what is not</span></li>
      <li><a href="/CONTRIBUTING.md">Contributing</a><span>build it, test it, add a directive</span></li>
    </ul>
  </section>
</main>

<footer>
  <p>This site is <code>examples/demo</code>: a few PHP files, one stylesheet, one script, and a Caddyfile with comments that teach.</p>
</footer>
</body>
</html>
