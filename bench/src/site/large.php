<?php
require __DIR__ . '/tasks.php';
answer_large($_GET);
