<?php
require __DIR__ . '/sleep.php';
