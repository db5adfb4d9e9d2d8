<?php

declare(strict_types=1);

namespace Demo;

/**
 * A small application with what frameworks do before they can answer: it builds its table of routes.
 *
 * In classic mode that happens for each request, in worker mode once for each thread.
 */
final class Application
{
    private const ROUTES = 4000;

    /** @var array<string, array{pattern: string, name: string}> by the first segment of the path */
    private array $routes = [];

    private readonly float $bootMilliseconds;

    public function __construct()
    {
        $started = hrtime(true);
        for ($i = 0; $i < self::ROUTES; ++$i) {
            $path = "/section-$i/{year}/{slug}";
            $pattern = preg_replace_callback('/\{(\w+)\}/', static fn (array $m): string => "(?<{$m[1]}>[^/]+)", $path);
            $this->routes["section-$i"] = ['pattern' => "#^$pattern$#", 'name' => "route_$i"];
        }
        $this->bootMilliseconds = (hrtime(true) - $started) / 1e6;
    }

    /** @return array<string, mixed> what the page shows of an answer */
    public function handle(string $path): array
    {
        $section = explode('/', trim($path, '/'))[0];
        $route = $this->routes[$section] ?? null;
        $found = null !== $route && 1 === preg_match($route['pattern'], $path, $parameters);

        return [
            'route' => $found ? $route['name'] : null,
            'parameters' => $found ? array_filter($parameters, 'is_string', ARRAY_FILTER_USE_KEY) : [],
            'boot_ms' => round($this->bootMilliseconds, 3),
            'memory' => memory_get_usage(),
        ];
    }
}
