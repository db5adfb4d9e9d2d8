<?php

/** Sends the requests of one experiment to this server, and tells the page of each answer when it comes. */

declare(strict_types=1);

use function Demo\send;

require __DIR__.'/../src/send.php';

// Milliseconds.
const HANG = 1500;
const HANGING_FROM = 1000;
const HANGING_EVERY = 10;
const FAST_EVERY = 8;
const FAST_UNTIL = 4000;

/** As many slow requests as the page asks for, all at once. */
function burst(): array
{
    $count = max(1, min(60, (int) ($_GET['count'] ?? 50)));

    return array_fill(0, $count, ['at' => 0, 'kind' => 'slow', 'path' => '/wait.php/free/burst?ms=200']);
}

/** More requests that hang than there are threads, in the midst of fast ones. */
function hang(string $path): array
{
    $plan = [];
    for ($i = 0; $i < 80; ++$i) {
        $at = HANGING_FROM + $i * HANGING_EVERY;
        $plan[] = ['at' => $at, 'kind' => 'hanging', 'path' => $path.'?ms='.HANG];
    }
    for ($at = 0; $at < FAST_UNTIL; $at += FAST_EVERY) {
        $plan[] = ['at' => $at, 'kind' => 'fast', 'path' => '/wait.php/fast'];
    }

    return $plan;
}

$plan = match ($_GET['run'] ?? '') {
    'burst' => burst(),
    'hang' => hang('/wait.php/hang'),
    'hang-without-lanes' => hang('/wait.php/free/hang'),
    default => [],
};
if ([] === $plan) {
    http_response_code(404);
    exit;
}

header('Content-Type: text/event-stream');
header('Cache-Control: no-store');
while (ob_get_level() > 0) {
    ob_end_flush();
}
foreach (send((int) $_SERVER['SERVER_PORT'], $plan) as $answer) {
    echo 'data: ', json_encode($answer), "\n\n";
    flush();
}
echo "event: end\ndata: {}\n\n";
