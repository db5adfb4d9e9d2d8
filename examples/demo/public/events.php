<?php

/** Server-sent events: each one leaves at its flush(), while the script goes on. */

declare(strict_types=1);

const EVENTS = 40;
const PAUSE_MICROSECONDS = 125_000;

header('Content-Type: text/event-stream');
header('Cache-Control: no-store');

while (ob_get_level() > 0) {
    ob_end_flush();
}
for ($i = 1; $i <= EVENTS && !connection_aborted(); ++$i) {
    $event = ['number' => $i, 'of' => EVENTS, 'sent' => microtime(true) * 1000];
    echo 'data: ', json_encode($event), "\n\n";
    flush();
    usleep(PAUSE_MICROSECONDS);
}
echo "event: end\ndata: {}\n\n";
