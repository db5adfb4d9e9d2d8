<?php

/** A site at whatever address it is asked by, without background work and without requests to other hosts. */

define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:SOCKET');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_HOME', 'http://'.$_SERVER['HTTP_HOST']);
define('WP_SITEURL', 'http://'.$_SERVER['HTTP_HOST']);
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);

foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define($name.'_KEY', 'a key of the benchmark: '.$name);
    define($name.'_SALT', 'a salt of the benchmark: '.$name);
}

$table_prefix = 'wp_';

defined('ABSPATH') || define('ABSPATH', __DIR__.'/');
require_once ABSPATH.'wp-settings.php';
