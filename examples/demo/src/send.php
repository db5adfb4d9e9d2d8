<?php

declare(strict_types=1);

namespace Demo;

/**
 * Sends requests to this machine, each at its time on a connection of its own, and yields their answers as they come.
 *
 * A browser could not do it: it opens six connections to a server and keeps what is beyond that to itself.
 *
 * @param list<array{at: int|float, kind: string, path: string}> $plan times in milliseconds from now
 *
 * @return \Generator<array{kind: string, at: float, took: float, status: int, thread: string}>
 */
function send(int $port, array $plan): \Generator
{
    usort($plan, static fn (array $a, array $b): int => $a['at'] <=> $b['at']);
    $begin = hrtime(true);
    $now = static fn (): float => (hrtime(true) - $begin) / 1e6;
    $open = [];
    while ($plan || $open) {
        while ($plan && $plan[0]['at'] <= $now()) {
            $request = array_shift($plan) + ['sent' => $now(), 'answer' => ''];
            $stream = ask($port, $request['path']);
            $open[(int) $stream] = ['stream' => $stream] + $request;
        }
        foreach (readable($open, $plan ? $plan[0]['at'] - $now() : null) as $id => $stream) {
            $open[$id]['answer'] .= fread($stream, 8192);
            if (feof($stream)) {
                fclose($stream);
                yield answer($open[$id], $now());
                unset($open[$id]);
            }
        }
    }
}

/** @return resource */
function ask(int $port, string $path)
{
    $stream = stream_socket_client("tcp://127.0.0.1:$port", timeout: 5);
    fwrite($stream, "GET $path HTTP/1.1\r\nHost: 127.0.0.1:$port\r\nConnection: close\r\n\r\n");
    stream_set_blocking($stream, false);

    return $stream;
}

/** Waits for answers, or for the next request's time. */
function readable(array $open, ?float $milliseconds): array
{
    $microseconds = null === $milliseconds ? 10_000_000 : (int) max(0, $milliseconds * 1000);
    if ([] === $open) {
        usleep($microseconds);

        return [];
    }
    $streams = array_map(static fn (array $request) => $request['stream'], $open);
    $write = $except = null;

    return stream_select($streams, $write, $except, 0, $microseconds) ? $streams : [];
}

/** What the page is told of an answer. */
function answer(array $request, float $now): array
{
    preg_match('#^HTTP/1\.1 (\d+)#', $request['answer'], $status);
    preg_match('#^X-Thread: (\w*)#mi', $request['answer'], $thread);

    return [
        'kind' => $request['kind'],
        'at' => round($request['sent'], 1),
        'took' => round($now - $request['sent'], 1),
        'status' => (int) ($status[1] ?? 0),
        'thread' => $thread[1] ?? '',
    ];
}
