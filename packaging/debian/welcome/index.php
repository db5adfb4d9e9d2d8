<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Regent works</title>
<style>
  body { font: 18px/1.5 system-ui, sans-serif; max-width: 38em; margin: 15vh auto; padding: 0 1em; color: #223 }
  code { background: #eef; padding: .1em .3em; border-radius: .2em }
</style>
<h1>It works.</h1>
<p>This page was made by <?= htmlspecialchars($_SERVER['SERVER_SOFTWARE']) ?> with PHP <?= PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION ?>.
<p>To serve your application, name its public directory after <code>root</code> in <code>/etc/regent/Caddyfile</code>, then run
<code>sudo systemctl reload regent</code>. <code>sudo regent doctor --config /etc/regent/Caddyfile</code> says what to improve.
