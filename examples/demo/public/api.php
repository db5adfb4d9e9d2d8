<?php

/** The application in classic mode: it is built for this request and gone with it. */

declare(strict_types=1);

use Demo\Application;

require __DIR__.'/../src/Application.php';

header('Content-Type: application/json');
header('Cache-Control: no-store');
$application = new Application();
echo json_encode([
    'mode' => 'classic',
    'thread' => $_SERVER['REGENT_THREAD'] ?? null,
    'handled' => 1,
] + $application->handle($_GET['path'] ?? '/'));
