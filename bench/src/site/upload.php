<?php
require __DIR__ . '/tasks.php';
answer_upload();
