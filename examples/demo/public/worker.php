<?php

/** The application in worker mode: built once in this thread, then asked again and again. */

declare(strict_types=1);

use Demo\Application;

require __DIR__.'/../src/Application.php';

$application = new Application();
$handled = 0;

$handler = static function () use ($application, &$handled): void {
    header('Content-Type: application/json');
    header('Cache-Control: no-store');
    echo json_encode([
        'mode' => 'worker',
        'thread' => $_SERVER['REGENT_THREAD'] ?? null,
        'handled' => ++$handled,
    ] + $application->handle($_GET['path'] ?? '/'));
};

while (frankenphp_handle_request($handler)) {
    // The loop ends when the server wants this thread to end.
}
