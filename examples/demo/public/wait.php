<?php

/**
 * What a request does that waits for a database or another server: nothing, for a while.
 *
 * What follows the name of the script in the path makes different routes of it: /wait.php/fast and so on.
 */

declare(strict_types=1);

header('Cache-Control: no-store');
header('X-Thread: '.($_SERVER['REGENT_THREAD'] ?? ''));
usleep(max(0, min(5000, (int) ($_GET['ms'] ?? 0))) * 1000);
echo "done\n";
