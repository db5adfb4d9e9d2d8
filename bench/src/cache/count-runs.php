<?php

/** Counts the runs for a page that many come for, and tells their number to who asks by POST. */

$of = static fn (string $page): string => WP_CONTENT_DIR.'/runs-'.(int) $page;

if (isset($_GET['NAME-runs'])) {
    exit((string) (int) @filesize($of($_GET['NAME-runs'])));
}
if (isset($_GET['NAME'])) {
    file_put_contents($of($_GET['NAME']), '.', FILE_APPEND | LOCK_EX);
}
