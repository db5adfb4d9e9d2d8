<?php

/** Takes one file and says what arrived; the file itself is gone when the request ends. */

declare(strict_types=1);

header('Content-Type: application/json');
header('Cache-Control: no-store');

$reasons = [
    UPLOAD_ERR_INI_SIZE => 'it is larger than '.ini_get('upload_max_filesize'),
    UPLOAD_ERR_PARTIAL => 'only a part of it arrived',
    UPLOAD_ERR_NO_FILE => 'no file was chosen',
];
$file = $_FILES['file'] ?? ['error' => UPLOAD_ERR_NO_FILE];
if (UPLOAD_ERR_OK !== $file['error']) {
    http_response_code(422);
    exit(json_encode(['error' => $reasons[$file['error']] ?? 'it could not be stored']));
}
echo json_encode([
    'name' => $file['name'],
    'size' => $file['size'],
    'sha256' => hash_file('sha256', $file['tmp_name']),
    'milliseconds' => round((microtime(true) - $_SERVER['REQUEST_TIME_FLOAT']) * 1000, 1),
]);
