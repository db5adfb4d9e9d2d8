/*
 * The shared memory between Regent's server and an engine: all that an engine in another language needs.
 *
 * C11, Linux, little-endian. Words that both sides touch are _Atomic; what is written in the comments about their
 * order is part of the protocol. The Rust sources beside this file say why, and the test `c_header` compares the two.
 *
 * WHAT AN ENGINE IS GIVEN
 * File descriptors: REGENT_WIRE_FD_MEMORY, REGENT_WIRE_FD_CONTROL (a stream socket) and, from
 * REGENT_WIRE_FD_DOORBELLS on, one eventfd for each I/O thread of the server. The engine reads one line of JSON from
 * the socket, the start message:
 *   {"ini":[["name","value"],…],"software":"…","slow_after_ms":0,"departed_after_ms":0,
 *     "pools":[{"name":"…","max_requests":0,"max_memory":0,"max_age_ms":0,
 *     "worker":null | {"file":"…","env":[["name","value"],…],"max_consecutive_failures":null|6}},…],
 *     "process":0, "threads":[{"index":0,"pool":0},…]}
 * and later orders, one a line:
 *   {"start":{"threads":[{"index":8,"pool":0},…]}}                   more threads, side by side
 *   {"trace":{"index":8}}                                            event traced: what the thread is at
 *   {"beat":{"number":7}}                                            process.beat = 7 (release), at once
 * and writes events, one a line:
 *   {"started":{"version":"8.4.1","opcache":"enabled"|"disabled"}}   "ready"
 *   {"thread_ended":{"index":8,"error":null|"why it could not be started"}}
 *   {"died":{"index":8,"how":"it was ended by signal 11","signal":11|null}}   the thread was a process: its request is lost
 *   {"log":{"level":0..7,"message":"…"}}                             {"restart_wanted":{"reason":"…"}}
 *   {"overdue":{"index":8,"script":"/srv/a.php","uri":"/a?b","limit_ms":30000,"ran_ms":30004,"departed":false,
 *     "end":"opcode"|"signal"|"socket"|"written_off"|"killed",
 *     "stack":"#0 sleep()\n#1 {main} /srv/a.php:3"}}
 *   {"slow":{"index":8,"script":"…","uri":"…","ran_ms":1001,"stack":"…","omitted":0}}
 *   {"traced":{"index":8,"stack":"…"}}
 *   {"worker_ended":{"worker":"…","end":"orderly"|"crash"}}
 *   {"worker_failed":{"worker":"…","failures":6}}                    {"failed":{"message":"…"}}
 * When the socket closes the engine ends at once. A line of it has at most REGENT_WIRE_MAX_EVENT bytes.
 *
 * PROCESSES
 * Several processes may share the memory, each with a socket and threads of its own. Below, `process` is
 * header.processes[start.process].
 *
 * BEATS
 * Whatever requests do, one thread reads orders and answers beats, four a second. Before the first answer it sets
 * process.beat_tid. An engine that leaves beats unanswered for more than a second is killed, unless that thread waits
 * for the CPU or the disk; so is one that closes the socket, writes lines that are too long or no events, or leaves
 * requests waiting beside threads that ask for some.
 *
 * FAULTS
 * An engine may tell which of its threads a signal that ends it was raised in (SIGSEGV, SIGABRT and the like): a handler of the
 * signal stores that thread's `tid` in process.fault_tid, and lets the signal end the process. Otherwise every request that ran is a
 * suspect.
 *
 * THE LIFE OF A THREAD
 * The server numbers the threads. A thread may be a process of its own; then `tid` is its pid, and it belongs to the process group
 * of the one that the server has started. A thread sets its thread's `pool` and `tid`, and then repeats: take a token, claim the
 * slot, run the request, release the slot. At its end it sets `state` to ABSENT and sends the event: the server may give its number to another
 * thread from then on.
 *
 * TAKE A TOKEN, from the pool's FIFO, between thread.asks = 1 and thread.asks = 0, with `stop` for "header.draining or this thread's `retire` is not 0"
 *   1  s = stop, read before the FIFO. Not s: MAKE WAY; slept: go to 1. Pop (below). A token: CHAIN, and return it. None
 *      and s: the thread ends.
 *   2  If pool.spin > 0 and a wake can be RESERVED: look at the FIFO so often, RETURN THE WAKE; something came: go to 1.
 *   3  thread.parker = 0 (relaxed); set the thread's bit in pool.idle (seq_cst); fence(seq_cst).
 *   4  Pop once more. None, and not stop: futex(FUTEX_WAIT, &thread.parker, 0), not FUTEX_PRIVATE.
 *   5  Clear the thread's bit (fetch_and, seq_cst). If it was cleared already: RETURN THE WAKE.
 *   6  A token in 4: CHAIN, and return it. Otherwise go to 1.
 * Pop:              h = head (acquire); if h == tail (acquire): none. t = cells[h & (fifo_capacity - 1)] (relaxed);
 *                   compare_exchange(head, h, h + 1) (acq_rel), t is the token; on failure again with what was seen.
 * MAKE WAY:         if fewer bits than pool.kept_asleep are set in pool.idle: as 3; not stop, and no more bits than
 *                   pool.kept_asleep are set now (seq_cst): sleep as in 4, without a pop. Then 5.
 * CHAIN:            if head != tail: WAKE.
 * WAKE:             fence(seq_cst); then, a bounded number of times: no more bits than pool.kept_asleep are set in
 *                   pool.idle (seq_cst): done. RESERVE a wake; no: done. Clear one bit (fetch_and, seq_cst), found by pool.scheduling: 0, the next from
 *                   pool.next_idle on, round; 1, the lowest. Cleared by us: pool.next_idle = thread + 1; its parker = 1
 *                   (release); futex(FUTEX_WAKE, 1); done. None found: RETURN THE WAKE; head == tail: done.
 * RESERVE a wake:   pool.waking += 1 if it is below max(pool.wake_limit, 1), by compare_exchange (seq_cst).
 * RETURN THE WAKE:  pool.waking -= 1 if it is not 0, by compare_exchange (seq_cst); fence(seq_cst).
 *
 * CLAIM: slot.state from regent_wire_state(generation, QUEUED, 0) to regent_wire_state(generation, RUNNING, thread),
 * by compare_exchange (acq_rel). If it fails the request was withdrawn: add 1 to pool.void_tokens (relaxed), and take
 * the next token.
 *
 * READ THE BODY. `read` is the thread's own count, 0 at the claim.
 *   1  b = slot.body_state (acquire); available = slot.request_tail (acquire) - read.
 *   2  available > 0: copy from the request ring at read & (request_capacity - 1), wrapping around; read += n;
 *      slot.request_head = read (release); fence(seq_cst); if slot.server_waits is not 0 and exchanging it for 0
 *      (seq_cst) gave not 0: MARK.
 *   3  Otherwise, b COMPLETE: the end. BROKEN, or slot.cancelled (acquire): an error. OPEN: WAIT for one of these.
 *
 * WRITE THE RESPONSE: frames (below) at written & (response_capacity - 1), wrapping around; `written` is the thread's
 * own count, 0 at the claim. There is room for response_capacity - (written - slot.response_head (acquire)) bytes. No
 * frame is larger than half the ring, body frames than 32 KiB: larger heads, trailers and log frames, with a payload of up to
 * frame_capacity bytes, are written in PARTs. What is larger still is left out; for a head that is, an END with REFUSED is written
 * instead of the response. PUBLISH whole frames only: slot.response_tail = written
 * (release); MARK. When there is no room: PUBLISH, then WAIT for it. Once slot.cancelled is set nobody reads.
 *
 * WAIT for something that the server does to the slot: n = slot.signal (seq_cst); slot.engine_waits = 1 (seq_cst);
 * fence(seq_cst); if it has not happened: futex(FUTEX_WAIT, &slot.signal, n); slot.engine_waits = 0 (relaxed); look
 * again.
 *
 * MARK the slot for its I/O thread, which is slot / slots_per_io; with i = slot % slots_per_io and w = i / 64: set bit
 * i % 64 of dirty[w] (fetch_or, release); set bit w % 64 of io.summary[w / 64] (fetch_or, release); fence(seq_cst); if
 * io.parked (relaxed) is not 0 and exchanging it for 0 (seq_cst) gave not 0: write 1 to its eventfd.
 *
 * END WHAT IS OVERDUE: a request that has run for slot.time_limit ns since its claim, if that is not 0, is to be ended, its
 * end frame OVERDUE, unless its response has ended before. When it has ended, or when its thread is written off because it
 * does not come back, the engine sends the event overdue, once. A thread that is written off is told to retire.
 *
 * RELEASE: slot.response_tail = written (release); slot.state from regent_wire_state(generation, RUNNING, thread) to
 * regent_wire_state(generation, DONE, 0) by compare_exchange (acq_rel); MARK. If the end frame was published before,
 * the eventfd (and the fence) may be left out, unless the request was a long one. The slot is the server's after that.
 */
#ifndef REGENT_WIRE_H
#define REGENT_WIRE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define REGENT_WIRE_FD_MEMORY 3
#define REGENT_WIRE_FD_CONTROL 4
#define REGENT_WIRE_FD_DOORBELLS 5
#define REGENT_WIRE_MAX_EVENT 131072

/* "REGENTW8": refuse any other value. */
#define REGENT_WIRE_MAGIC UINT64_C(0x3857544E45474552)
#define REGENT_WIRE_PAGE 4096
#define REGENT_WIRE_MAX_THREADS 1024
#define REGENT_WIRE_MAX_PROCESSES 16
#define REGENT_WIRE_IDLE_WORDS (REGENT_WIRE_MAX_THREADS / 64)
#define REGENT_WIRE_SUMMARY_WORDS 8
/* From the start of a slot to the request head. */
#define REGENT_WIRE_SLOT_HEAD 512

/* What the engine tells of one of its processes; all 0 before that. */
struct regent_wire_process {
    _Atomic uint32_t beat_tid;  /* gettid() of who answers beats, or 0 */
    _Atomic uint32_t fault_tid; /* gettid() of the thread that a fault ends the process in, or 0 */
    _Atomic uint64_t beat;      /* number of the last beat that was answered */
};

/* Offset 0. The server writes it once, but for `draining`; `processes` are the engine's. */
struct regent_wire_header {
    _Atomic uint64_t magic;
    _Atomic uint32_t io_threads;
    _Atomic uint32_t slots_per_io; /* a power of two, at least 64 */
    _Atomic uint32_t pools;
    _Atomic uint32_t threads;
    _Atomic uint32_t head_capacity;     /* bytes */
    _Atomic uint32_t request_capacity;  /* bytes, a power of two */
    _Atomic uint32_t response_capacity; /* bytes, a power of two */
    _Atomic uint32_t draining;          /* 1: threads end when their FIFO is empty */
    _Atomic uint32_t frame_capacity;    /* bytes of the payload of the largest frame */
    uint32_t pad0;
    uint64_t pad1[2];
    struct regent_wire_process processes[REGENT_WIRE_MAX_PROCESSES];
};

struct regent_wire_pool {
    _Atomic uint64_t tail; /* tokens pushed; written by the server */
    uint64_t pad0[7];
    _Atomic uint64_t head; /* tokens taken; written by engine threads */
    _Atomic uint64_t void_tokens; /* of those, tokens of withdrawn requests; written by engine threads */
    uint64_t pad1[6];
    _Atomic uint32_t waking;     /* wakes in flight */
    _Atomic uint32_t wake_limit; /* most of them; written by the server */
    _Atomic uint32_t next_idle;
    _Atomic uint32_t scheduling; /* 0: spread, 1: pack; written by the server */
    _Atomic uint32_t spin;       /* looks at an empty FIFO before a sleep; written by the server */
    _Atomic uint32_t kept_asleep; /* idle threads that nobody wakes for a request; written by the server */
    uint32_t pad2[10];
    _Atomic uint64_t idle[REGENT_WIRE_IDLE_WORDS]; /* a bit for each thread of the engine */
};

enum regent_wire_thread_state {
    REGENT_WIRE_THREAD_ABSENT = 0,
    REGENT_WIRE_THREAD_BOOTING = 1,
    REGENT_WIRE_THREAD_IDLE = 2,
    REGENT_WIRE_THREAD_BUSY = 3,
    REGENT_WIRE_THREAD_BACKOFF = 4 /* a script that failed is started again later */
};

struct regent_wire_thread {
    _Atomic uint32_t parker;
    _Atomic uint32_t state; /* enum regent_wire_thread_state, for lists and metrics */
    _Atomic uint32_t pool;
    _Atomic uint32_t tid;    /* gettid(), or 0 */
    _Atomic uint32_t retire; /* 1: ends before its next request; written by the server */
    _Atomic uint32_t asks;   /* 1: it waits for a token, and does nothing else */
    _Atomic uint64_t since;    /* when it came to its state, in ns of CLOCK_MONOTONIC */
    _Atomic uint64_t busy;     /* ns spent on requests that have ended */
    _Atomic uint64_t token;    /* that it runs */
    _Atomic uint64_t requests; /* taken */
    _Atomic uint64_t restarts; /* of its script */
    _Atomic uint64_t memory;   /* bytes that its last request took at most */
    _Atomic uint32_t asked;    /* questions of its script to the server, which only PHP's has */
    _Atomic uint32_t answered; /* the number of the last one that was answered; written by the server */
    _Atomic uint64_t answer;   /* the same */
    uint64_t pad1[5];
};

struct regent_wire_io {
    _Atomic uint32_t parked;
    uint32_t pad0[15];
    _Atomic uint64_t summary[REGENT_WIRE_SUMMARY_WORDS];
};

enum regent_wire_body_state {
    REGENT_WIRE_BODY_OPEN = 0,     /* more may come */
    REGENT_WIRE_BODY_COMPLETE = 1, /* what is in the ring is the rest */
    REGENT_WIRE_BODY_BROKEN = 2
};

struct regent_wire_slot {
    _Atomic uint64_t state;    /* regent_wire_state() */
    _Atomic uint32_t head_len; /* bytes of the encoded head */
    _Atomic uint32_t pool;
    _Atomic uint32_t cancelled;
    _Atomic uint32_t body_state;     /* enum regent_wire_body_state */
    _Atomic uint64_t request_tail;   /* bytes written; server */
    _Atomic uint64_t response_head;  /* bytes read; server */
    _Atomic uint64_t submitted;      /* when it began to wait, in ns of CLOCK_MONOTONIC */
    _Atomic uint64_t time_limit;     /* ns that the request may run from its claim on; 0: without end */
    uint64_t pad0;
    _Atomic uint64_t request_head;  /* bytes read; engine */
    _Atomic uint64_t response_tail; /* bytes written; engine */
    uint64_t pad1[6];
    _Atomic uint32_t engine_waits;
    _Atomic uint32_t signal;
    _Atomic uint32_t server_waits;
    uint32_t pad2[13];
};

enum regent_wire_slot_state {
    REGENT_WIRE_SLOT_FREE = 0,
    REGENT_WIRE_SLOT_QUEUED = 1,
    REGENT_WIRE_SLOT_RUNNING = 2,
    REGENT_WIRE_SLOT_DONE = 3
};

/* A token, what the FIFO holds: the slot, counted over all I/O threads, and the generation in the upper half. */
static inline uint32_t regent_wire_token_slot(uint64_t token) {
    return (uint32_t)token;
}

static inline uint32_t regent_wire_token_generation(uint64_t token) {
    return (uint32_t)(token >> 32);
}

/* A slot's state word. `thread` is 0 unless the state is RUNNING. */
static inline uint64_t regent_wire_state(uint32_t generation, enum regent_wire_slot_state state, uint32_t thread) {
    return (uint64_t)thread << 40 | (uint64_t)generation << 8 | (uint64_t)state;
}

/* Where everything is: bytes from the start of the memory. */
struct regent_wire_layout {
    uint64_t pools;
    uint64_t threads;
    uint64_t ios;
    uint64_t dirty;      /* of I/O thread 0: slots_per_io / 64 words */
    uint64_t dirty_size; /* bytes from one I/O thread's to the next one's */
    uint64_t cells;      /* of pool 0 */
    uint64_t fifo_capacity;
    uint64_t slots; /* slot 0 */
    uint64_t slot_size;
    uint64_t request_ring;  /* from the start of a slot */
    uint64_t response_ring; /* from the start of a slot */
    uint64_t total;
};

static inline uint64_t regent_wire_round_up(uint64_t value, uint64_t to) {
    return (value + to - 1) / to * to;
}

static inline struct regent_wire_layout regent_wire_layout(const struct regent_wire_header *header) {
    struct regent_wire_layout at;
    uint64_t io_threads = header->io_threads, slots = header->slots_per_io, pools = header->pools;
    at.pools = REGENT_WIRE_PAGE;
    at.threads = at.pools + pools * sizeof(struct regent_wire_pool);
    at.ios = at.threads + header->threads * sizeof(struct regent_wire_thread);
    at.dirty = at.ios + io_threads * sizeof(struct regent_wire_io);
    at.dirty_size = regent_wire_round_up(slots / 8, 64);
    at.cells = at.dirty + io_threads * at.dirty_size;
    for (at.fifo_capacity = 1; at.fifo_capacity < io_threads * slots * 4; at.fifo_capacity *= 2) {
    }
    at.slots = regent_wire_round_up(at.cells + pools * at.fifo_capacity * 8, REGENT_WIRE_PAGE);
    at.request_ring = regent_wire_round_up(REGENT_WIRE_SLOT_HEAD + header->head_capacity, REGENT_WIRE_PAGE);
    at.response_ring = at.request_ring + header->request_capacity;
    at.slot_size = at.response_ring + header->response_capacity;
    at.total = at.slots + io_threads * slots * at.slot_size;
    return at;
}

/*
 * The request head, at REGENT_WIRE_SLOT_HEAD in the slot, unaligned from the first variable on:
 *   u64 body length, REGENT_WIRE_LENGTH_UNKNOWN if it is not known
 *   u32 number of variables
 *   u32 how many of the first ones are the site's environment
 * and for each variable:
 *   u16 key, u16 name length (0 with a key), u32 value length,
 *   with REGENT_WIRE_KEY_OTHER: the name and a NUL; then the value and a NUL. The NULs do not count.
 */
#define REGENT_WIRE_LENGTH_UNKNOWN UINT64_MAX
#define REGENT_WIRE_HEAD_PREFIX 16
#define REGENT_WIRE_VARIABLE 8
#define REGENT_WIRE_KEY_OTHER 0xFFFF

/*
 * A frame of the response ring: u32 payload length, u8 kind, u8 flags, u16 0, payload.
 *   HEAD, INFORMATIONAL (1xx; the real head follows):
 *     u16 status 100–999, u16 reason length, u32 number of fields, reason,
 *     for each field: u16 name length, u16 0, u32 value length, name, value
 *   BODY: bytes
 *   END: flag TRUNCATED: the response broke off; OVERDUE: the request ran for longer than its time_limit; REFUSED: the head is too large, there is no response. Nothing, or u64 ns that the request waited, u64 ns since its start, u64
 *     ns of CPU time since then (all bits set: not measured); and then nothing, or a u64: the number of its thread
 *   LOG: u8 level (syslog's, 0–7), 3 bytes 0, u32 message length, message, context (a JSON object, or nothing)
 *   TRAILERS: u32 number of fields, fields as in HEAD; at most once, between the last BODY and END
 *   PART: bytes of a HEAD, INFORMATIONAL, TRAILERS or LOG frame, from its header on, which the first part has as a whole. No other
 *     frame comes before the last part.
 */
#define REGENT_WIRE_FRAME_HEADER 8
#define REGENT_WIRE_FRAME_HEAD 1
#define REGENT_WIRE_FRAME_INFORMATIONAL 2
#define REGENT_WIRE_FRAME_BODY 3
#define REGENT_WIRE_FRAME_END 4
#define REGENT_WIRE_FRAME_LOG 5
#define REGENT_WIRE_FRAME_TRAILERS 6
#define REGENT_WIRE_FRAME_PART 7
#define REGENT_WIRE_FLAG_TRUNCATED 1
#define REGENT_WIRE_FLAG_OVERDUE 2
#define REGENT_WIRE_FLAG_REFUSED 4

/* Names that have a key: X(key, name). */
#define REGENT_WIRE_NAMES(X) \
    X(0, "REQUEST_METHOD") \
    X(1, "REQUEST_URI") \
    X(2, "QUERY_STRING") \
    X(3, "CONTENT_TYPE") \
    X(4, "CONTENT_LENGTH") \
    X(5, "SCRIPT_FILENAME") \
    X(6, "SCRIPT_NAME") \
    X(7, "DOCUMENT_ROOT") \
    X(8, "DOCUMENT_URI") \
    X(9, "PATH_INFO") \
    X(10, "PATH_TRANSLATED") \
    X(11, "PHP_SELF") \
    X(12, "SERVER_PROTOCOL") \
    X(13, "SERVER_SOFTWARE") \
    X(14, "SERVER_NAME") \
    X(15, "SERVER_PORT") \
    X(16, "SERVER_ADDR") \
    X(17, "GATEWAY_INTERFACE") \
    X(18, "REQUEST_SCHEME") \
    X(19, "HTTPS") \
    X(20, "SSL_PROTOCOL") \
    X(21, "SSL_CIPHER") \
    X(22, "REMOTE_ADDR") \
    X(23, "REMOTE_HOST") \
    X(24, "REMOTE_PORT") \
    X(25, "REMOTE_USER") \
    X(26, "REMOTE_IDENT") \
    X(27, "AUTH_TYPE") \
    X(28, "FRANKENPHP_WORKER") \
    X(29, "REGENT_WORKER") \
    X(30, "REGENT_THREAD") \
    X(31, "HTTP_HOST") \
    X(32, "HTTP_USER_AGENT") \
    X(33, "HTTP_ACCEPT") \
    X(34, "HTTP_ACCEPT_ENCODING") \
    X(35, "HTTP_ACCEPT_LANGUAGE") \
    X(36, "HTTP_ACCEPT_CHARSET") \
    X(37, "HTTP_AUTHORIZATION") \
    X(38, "HTTP_CACHE_CONTROL") \
    X(39, "HTTP_CONNECTION") \
    X(40, "HTTP_COOKIE") \
    X(41, "HTTP_DNT") \
    X(42, "HTTP_EXPECT") \
    X(43, "HTTP_FORWARDED") \
    X(44, "HTTP_IF_MATCH") \
    X(45, "HTTP_IF_MODIFIED_SINCE") \
    X(46, "HTTP_IF_NONE_MATCH") \
    X(47, "HTTP_IF_RANGE") \
    X(48, "HTTP_IF_UNMODIFIED_SINCE") \
    X(49, "HTTP_KEEP_ALIVE") \
    X(50, "HTTP_ORIGIN") \
    X(51, "HTTP_PRAGMA") \
    X(52, "HTTP_PRIORITY") \
    X(53, "HTTP_RANGE") \
    X(54, "HTTP_REFERER") \
    X(55, "HTTP_SEC_CH_UA") \
    X(56, "HTTP_SEC_CH_UA_MOBILE") \
    X(57, "HTTP_SEC_CH_UA_PLATFORM") \
    X(58, "HTTP_SEC_FETCH_DEST") \
    X(59, "HTTP_SEC_FETCH_MODE") \
    X(60, "HTTP_SEC_FETCH_SITE") \
    X(61, "HTTP_SEC_FETCH_USER") \
    X(62, "HTTP_TE") \
    X(63, "HTTP_UPGRADE") \
    X(64, "HTTP_UPGRADE_INSECURE_REQUESTS") \
    X(65, "HTTP_VIA") \
    X(66, "HTTP_X_FORWARDED_FOR") \
    X(67, "HTTP_X_FORWARDED_HOST") \
    X(68, "HTTP_X_FORWARDED_PROTO") \
    X(69, "HTTP_X_REAL_IP") \
    X(70, "HTTP_X_REQUESTED_WITH") \
    X(71, "HTTP_X_CSRF_TOKEN") \
    X(72, "HTTP_CONTENT_TYPE") \
    X(73, "HTTP_CONTENT_LENGTH") \
    X(74, "REGENT_HUB") \
    X(75, "REGENT_CACHE")

#endif
