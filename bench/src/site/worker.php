<?php
require __DIR__ . '/tasks.php';

$handler = static function (): void {
    match ($_SERVER['PATH_INFO'] ?? '') {
        '/sleep', '/slow' => answer_sleep($_GET),
        '/large' => answer_large($_GET),
        '/upload' => answer_upload(),
        default => print str_repeat('.', 128),
    };
};
while (frankenphp_handle_request($handler)) {
}
