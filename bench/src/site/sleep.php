<?php
require __DIR__ . '/tasks.php';
answer_sleep($_GET);
