<?php

declare(strict_types=1);

namespace Demo;

/** Text for HTML. */
function html(string|int|float $text): string
{
    return htmlspecialchars((string) $text, ENT_QUOTES | ENT_SUBSTITUTE);
}

/** A number of bytes, as people read it. */
function bytes(int $count): string
{
    foreach (['B', 'KiB', 'MiB'] as $unit) {
        if ($count < 1024) {
            return round($count, $count < 10 ? 1 : 0).' '.$unit;
        }
        $count = intdiv($count, 1024);
    }

    return $count.' GiB';
}

/**
 * What can be said of the thread that runs this request.
 *
 * @return list<array{label: string, value: string, note: string}>
 */
function facts(): array
{
    $opcache = \function_exists('opcache_get_status') ? opcache_get_status(false) : false;
    $cached = \is_array($opcache) && $opcache['opcache_enabled'];

    return [
        ['label' => 'PHP', 'value' => PHP_VERSION, 'note' => PHP_ZTS ? 'thread-safe' : 'not thread-safe'],
        [
            'label' => 'Server',
            'value' => trim(strrchr($_SERVER['SERVER_SOFTWARE'] ?? '—', ' ') ?: '—', ' ()'),
            'note' => 'to you over '.$_SERVER['SERVER_PROTOCOL'],
        ],
        [
            'label' => 'Thread',
            'value' => (string) ($_SERVER['REGENT_THREAD'] ?? '—'),
            'note' => 'in process '.getmypid(),
        ],
        [
            'label' => 'OPcache',
            'value' => $cached ? 'on' : 'off',
            'note' => $cached
                ? $opcache['opcache_statistics']['num_cached_scripts'].' scripts, '.
                    number_format($opcache['opcache_statistics']['opcache_hit_rate'], 1).' % hits'
                : 'scripts are compiled each time',
        ],
        ['label' => 'Memory', 'value' => bytes(memory_get_usage()), 'note' => 'of '.\ini_get('memory_limit').' allowed'],
        [
            'label' => 'This page',
            'value' => number_format((microtime(true) - $_SERVER['REQUEST_TIME_FLOAT']) * 1000, 2).' ms',
            'note' => 'so far, in classic mode',
        ],
    ];
}
