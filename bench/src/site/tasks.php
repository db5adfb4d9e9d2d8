<?php
// What sleep.php, large.php and upload.php do once for each request, and worker scripts again and again.

/** Each iteration loops `work` times, sleeps `sleep` milliseconds and prints a line `output` times. */
function answer_sleep(array $query): void
{
    $sleep = (int) ($query['sleep'] ?? 0);
    $work = (int) ($query['work'] ?? 0);
    $output = (int) ($query['output'] ?? 1);
    $iterations = (int) ($query['iterations'] ?? 1);
    for ($i = 0; $i < $iterations; $i++) {
        for ($j = 0; $j < $work; $j++) {
            $a = +$j;
        }
        if ($sleep > 0) {
            usleep($sleep * 1000);
        }
        for ($k = 0; $k < $output; $k++) {
            echo "slept $sleep ms, looped $work times, and printed\n";
        }
    }
}

/** Prints `bytes` bytes in pieces of 8 KiB. */
function answer_large(array $query): void
{
    $piece = str_repeat('.', 8192);
    for ($left = (int) ($query['bytes'] ?? 0); $left > 8192; $left -= 8192) {
        echo $piece;
    }
    echo substr($piece, 0, $left);
}

/** Prints the number of bytes of the request's body, which is never whole in memory. */
function answer_upload(): void
{
    $body = fopen('php://input', 'rb');
    for ($bytes = 0; !feof($body); $bytes += strlen(fread($body, 65536))) {
    }
    echo $bytes;
}
