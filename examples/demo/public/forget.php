<?php

/** Ends the visitor's session. */

declare(strict_types=1);

if ('POST' !== $_SERVER['REQUEST_METHOD']) {
    http_response_code(405);
    header('Allow: POST');
    exit;
}
session_start();
session_destroy();
setcookie(session_name(), '', ['expires' => 1, 'path' => '/']);
header('Location: /#session', true, 303);
