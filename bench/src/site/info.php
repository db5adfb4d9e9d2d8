<?php
$opcache = function_exists('opcache_get_status') ? opcache_get_status(false) : false;
echo json_encode([
    'php' => PHP_VERSION,
    'sapi' => PHP_SAPI,
    'thread_safe' => (bool) PHP_ZTS,
    'opcache' => (bool) ($opcache['opcache_enabled'] ?? false),
    'jit' => (bool) ($opcache['jit']['on'] ?? false),
    'validate_timestamps' => (bool) ini_get('opcache.validate_timestamps'),
]);
