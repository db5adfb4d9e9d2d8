/*
 * A second engine, written from include/regent_wire.h alone: answers every request with its body.
 *
 * Usage: engine FIRST_THREAD END_THREAD POOL, with the memory as standard input and the doorbell of the only I/O
 * thread as standard error.
 */
#define _GNU_SOURCE
#include "regent_wire.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>

#define LOAD(word, order) atomic_load_explicit(&(word), memory_order_##order)
#define STORE(word, value, order) atomic_store_explicit(&(word), value, memory_order_##order)
#define FENCE() atomic_thread_fence(memory_order_seq_cst)

static uint8_t *memory;
static struct regent_wire_header *header;
static struct regent_wire_layout at;
static uint32_t pool_number;

struct thread {
    uint32_t number;
    struct regent_wire_thread *control;
    struct regent_wire_pool *pool;
    _Atomic uint64_t *cells;
    /* The request that it runs. */
    uint64_t token;
    uint8_t *base;
    struct regent_wire_slot *slot;
    uint64_t read, written;
};

static struct regent_wire_thread *thread_control(uint32_t number) {
    return (struct regent_wire_thread *)(memory + at.threads) + number;
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static bool reserve_wake(struct regent_wire_pool *pool) {
    uint32_t limit = LOAD(pool->wake_limit, relaxed), waking = LOAD(pool->waking, seq_cst);
    while (waking < (limit ? limit : 1))
        if (atomic_compare_exchange_weak(&pool->waking, &waking, waking + 1))
            return true;
    return false;
}

static void return_wake(struct regent_wire_pool *pool) {
    uint32_t waking = LOAD(pool->waking, seq_cst);
    while (waking > 0 && !atomic_compare_exchange_weak(&pool->waking, &waking, waking - 1)) {
    }
    FENCE();
}

static bool is_empty(struct regent_wire_pool *pool) {
    return LOAD(pool->head, acquire) == LOAD(pool->tail, acquire);
}

/* The next idle thread from `next_idle` on, whatever the scheduling: a valid choice, only less even. */
static int claim_idle(struct regent_wire_pool *pool) {
    uint32_t threads = LOAD(header->threads, relaxed), start = LOAD(pool->next_idle, relaxed);
    for (uint32_t step = 0; step < threads; step++) {
        uint32_t thread = (start + step) % threads;
        uint64_t bit = UINT64_C(1) << (thread % 64);
        if (atomic_fetch_and(&pool->idle[thread / 64], ~bit) & bit) {
            STORE(pool->next_idle, thread + 1, relaxed);
            return (int)thread;
        }
    }
    return -1;
}

static uint32_t count_idle(struct regent_wire_pool *pool) {
    uint32_t count = 0;
    for (int word = 0; word < REGENT_WIRE_IDLE_WORDS; word++)
        count += (uint32_t)__builtin_popcountll(LOAD(pool->idle[word], seq_cst));
    return count;
}

static bool may_wake(struct regent_wire_pool *pool) {
    return count_idle(pool) > LOAD(pool->kept_asleep, relaxed);
}

static void wake_one(struct regent_wire_pool *pool) {
    FENCE();
    for (int tries = 0; tries < 64 && may_wake(pool) && reserve_wake(pool); tries++) {
        int thread = claim_idle(pool);
        if (thread >= 0) {
            struct regent_wire_thread *control = thread_control((uint32_t)thread);
            STORE(control->parker, 1, release);
            futex(&control->parker, FUTEX_WAKE, 1);
            return;
        }
        return_wake(pool);
        if (is_empty(pool))
            return;
    }
}

static bool pop(struct thread *me, uint64_t *token) {
    uint64_t head = LOAD(me->pool->head, acquire);
    do {
        if (head == LOAD(me->pool->tail, acquire))
            return false;
        *token = LOAD(me->cells[head & (at.fifo_capacity - 1)], relaxed);
    } while (!atomic_compare_exchange_strong(&me->pool->head, &head, head + 1));
    return true;
}

static bool must_stop(struct thread *me) {
    return LOAD(header->draining, seq_cst) || LOAD(me->control->retire, seq_cst);
}

static bool spin(struct thread *me) {
    uint32_t rounds = LOAD(me->pool->spin, relaxed);
    if (!rounds || !reserve_wake(me->pool))
        return false;
    bool came = false;
    while (rounds-- && !came)
        came = !is_empty(me->pool);
    return_wake(me->pool);
    return came;
}

static bool make_way(struct thread *me) {
    if (count_idle(me->pool) >= LOAD(me->pool->kept_asleep, relaxed))
        return false;
    _Atomic uint64_t *word = &me->pool->idle[me->number / 64];
    uint64_t bit = UINT64_C(1) << (me->number % 64);
    STORE(me->control->parker, 0, relaxed);
    atomic_fetch_or(word, bit);
    FENCE();
    bool sleeps = count_idle(me->pool) <= LOAD(me->pool->kept_asleep, relaxed) && !must_stop(me);
    if (sleeps)
        futex(&me->control->parker, FUTEX_WAIT, 0);
    if (!(atomic_fetch_and(word, ~bit) & bit))
        return_wake(me->pool);
    return sleeps;
}

static bool park(struct thread *me, uint64_t *token) {
    _Atomic uint64_t *word = &me->pool->idle[me->number / 64];
    uint64_t bit = UINT64_C(1) << (me->number % 64);
    STORE(me->control->parker, 0, relaxed);
    atomic_fetch_or(word, bit);
    FENCE();
    bool taken = pop(me, token);
    if (!taken && !must_stop(me))
        futex(&me->control->parker, FUTEX_WAIT, 0);
    if (!(atomic_fetch_and(word, ~bit) & bit))
        return_wake(me->pool);
    return taken;
}

static bool take(struct thread *me, uint64_t *token) {
    for (;;) {
        bool stop = must_stop(me);
        if (!stop && make_way(me))
            continue;
        bool taken = pop(me, token);
        if (!taken && stop)
            return false;
        if (!taken && !spin(me))
            taken = park(me, token);
        if (taken) {
            if (!is_empty(me->pool))
                wake_one(me->pool);
            return true;
        }
    }
}

static bool claim(struct thread *me) {
    STORE(me->control->asks, 1, relaxed);
    while (take(me, &me->token)) {
        uint32_t generation = regent_wire_token_generation(me->token);
        uint64_t queued = regent_wire_state(generation, REGENT_WIRE_SLOT_QUEUED, 0);
        uint64_t running = regent_wire_state(generation, REGENT_WIRE_SLOT_RUNNING, me->number);
        me->base = memory + at.slots + regent_wire_token_slot(me->token) * at.slot_size;
        me->slot = (struct regent_wire_slot *)me->base;
        me->read = me->written = 0;
        if (atomic_compare_exchange_strong(&me->slot->state, &queued, running)) {
            STORE(me->control->asks, 0, relaxed);
            return true;
        }
        atomic_fetch_add(&me->pool->void_tokens, 1);
    }
    STORE(me->control->asks, 0, relaxed);
    return false;
}

static void mark(struct thread *me) {
    uint32_t slot = regent_wire_token_slot(me->token), slots = LOAD(header->slots_per_io, relaxed);
    uint32_t io = slot / slots, word = slot % slots / 64;
    struct regent_wire_io *control = (struct regent_wire_io *)(memory + at.ios) + io;
    _Atomic uint64_t *dirty = (_Atomic uint64_t *)(memory + at.dirty + io * at.dirty_size);
    atomic_fetch_or(&dirty[word], UINT64_C(1) << (slot % 64));
    atomic_fetch_or(&control->summary[word / 64], UINT64_C(1) << (word % 64));
    FENCE();
    if (LOAD(control->parked, relaxed) && atomic_exchange(&control->parked, 0)) {
        uint64_t one = 1;
        ssize_t ignored = write(STDERR_FILENO, &one, sizeof one);
        (void)ignored;
    }
}

static bool is_cancelled(struct thread *me) {
    return LOAD(me->slot->cancelled, acquire);
}

static uint64_t available(struct thread *me) {
    return LOAD(me->slot->request_tail, acquire) - me->read;
}

static uint64_t room(struct thread *me) {
    return header->response_capacity - (me->written - LOAD(me->slot->response_head, acquire));
}

static bool body_moves(struct thread *me, uint64_t wanted) {
    (void)wanted;
    return available(me) || LOAD(me->slot->body_state, acquire) != REGENT_WIRE_BODY_OPEN || is_cancelled(me);
}

static bool has_room(struct thread *me, uint64_t wanted) {
    return room(me) >= wanted || is_cancelled(me);
}

static void wait_for(struct thread *me, bool (*happened)(struct thread *, uint64_t), uint64_t wanted) {
    uint32_t seen = LOAD(me->slot->signal, seq_cst);
    STORE(me->slot->engine_waits, 1, seq_cst);
    FENCE();
    if (!happened(me, wanted))
        futex(&me->slot->signal, FUTEX_WAIT, seen);
    STORE(me->slot->engine_waits, 0, relaxed);
}

static void publish(struct thread *me) {
    STORE(me->slot->response_tail, me->written, release);
    mark(me);
}

/* The bytes read, 0 at the end, -1 if the body broke off. */
static int read_body(struct thread *me, uint8_t *buffer, uint64_t size) {
    for (;;) {
        uint32_t state = LOAD(me->slot->body_state, acquire);
        uint64_t count = available(me);
        if (count > 0) {
            count = count < size ? count : size;
            for (uint64_t i = 0; i < count; i++)
                buffer[i] = me->base[at.request_ring + ((me->read + i) & (header->request_capacity - 1))];
            me->read += count;
            STORE(me->slot->request_head, me->read, release);
            FENCE();
            if (LOAD(me->slot->server_waits, relaxed) && atomic_exchange(&me->slot->server_waits, 0))
                mark(me);
            return (int)count;
        }
        if (state == REGENT_WIRE_BODY_COMPLETE)
            return 0;
        if (state == REGENT_WIRE_BODY_BROKEN || is_cancelled(me))
            return -1;
        wait_for(me, body_moves, 0);
    }
}

static void put(struct thread *me, const void *bytes, size_t length) {
    for (size_t i = 0; i < length; i++, me->written++)
        me->base[at.response_ring + (me->written & (header->response_capacity - 1))] = ((const uint8_t *)bytes)[i];
}

static void frame(struct thread *me, uint8_t kind, uint8_t flags, const void *payload, uint32_t length) {
    while (!has_room(me, REGENT_WIRE_FRAME_HEADER + length)) {
        publish(me);
        wait_for(me, has_room, REGENT_WIRE_FRAME_HEADER + length);
    }
    if (is_cancelled(me))
        return;
    uint8_t start[REGENT_WIRE_FRAME_HEADER] = {0, 0, 0, 0, kind, flags, 0, 0};
    memcpy(start, &length, 4);
    put(me, start, sizeof start);
    put(me, payload, length);
}

#define KEY(key, name) [key] = name,
static const char *const names[] = {REGENT_WIRE_NAMES(KEY)};

/* Finds the value of a variable in the request head. */
static const char *variable(struct thread *me, const char *wanted, uint32_t *length) {
    const uint8_t *head = me->base + REGENT_WIRE_SLOT_HEAD;
    uint32_t count;
    memcpy(&count, head + 8, 4);
    for (head += REGENT_WIRE_HEAD_PREFIX; count--; head += *length + 1) {
        uint16_t key, name_length;
        memcpy(&key, head, 2);
        memcpy(&name_length, head + 2, 2);
        memcpy(length, head + 4, 4);
        head += REGENT_WIRE_VARIABLE;
        const char *name = key == REGENT_WIRE_KEY_OTHER ? (const char *)head : names[key];
        if (key == REGENT_WIRE_KEY_OTHER)
            head += name_length + 1;
        if (!strcmp(name, wanted))
            return (const char *)head;
    }
    return NULL;
}

static void answer_head(struct thread *me) {
    uint32_t length = 0, fields = 1;
    uint16_t status = 200, name_length = 6;
    const char *value = variable(me, "REQUEST_URI", &length);
    uint8_t payload[512] = {0};
    if (!value || length > 400)
        abort();
    memcpy(payload, &status, 2);
    memcpy(payload + 4, &fields, 4);
    memcpy(payload + 8, &name_length, 2);
    memcpy(payload + 12, &length, 4);
    memcpy(payload + 16, "X-Name", 6);
    memcpy(payload + 22, value, length);
    frame(me, REGENT_WIRE_FRAME_HEAD, 0, payload, 22 + length);
}

/* Behind the body: one field with the last digit of its length. */
static void answer_trailers(struct thread *me) {
    uint32_t fields = 1, value_length = 1;
    uint16_t name_length = 7;
    uint8_t payload[20] = {0};
    memcpy(payload, &fields, 4);
    memcpy(payload + 4, &name_length, 2);
    memcpy(payload + 8, &value_length, 4);
    memcpy(payload + 12, "X-Digit", 7);
    payload[19] = (uint8_t)('0' + me->read % 10);
    frame(me, REGENT_WIRE_FRAME_TRAILERS, 0, payload, sizeof payload);
}

static void run(struct thread *me) {
    uint8_t buffer[1000];
    int count;
    answer_head(me);
    while ((count = read_body(me, buffer, sizeof buffer)) > 0)
        frame(me, REGENT_WIRE_FRAME_BODY, 0, buffer, (uint32_t)count);
    answer_trailers(me);
    frame(me, REGENT_WIRE_FRAME_END, count < 0 ? REGENT_WIRE_FLAG_TRUNCATED : 0, NULL, 0);
    publish(me);
}

static void release(struct thread *me) {
    uint32_t generation = regent_wire_token_generation(me->token);
    uint64_t running = regent_wire_state(generation, REGENT_WIRE_SLOT_RUNNING, me->number);
    STORE(me->slot->response_tail, me->written, release);
    atomic_compare_exchange_strong(&me->slot->state, &running,
                                   regent_wire_state(generation, REGENT_WIRE_SLOT_DONE, 0));
    mark(me);
}

static void *thread_main(void *number) {
    struct thread me = {.number = (uint32_t)(uintptr_t)number};
    me.control = thread_control(me.number);
    me.pool = (struct regent_wire_pool *)(memory + at.pools) + pool_number;
    me.cells = (_Atomic uint64_t *)(memory + at.cells + pool_number * at.fifo_capacity * 8);
    STORE(me.control->pool, pool_number, relaxed);
    STORE(me.control->tid, (uint32_t)syscall(SYS_gettid), relaxed);
    STORE(me.control->state, REGENT_WIRE_THREAD_IDLE, relaxed);
    while (claim(&me)) {
        STORE(me.control->state, REGENT_WIRE_THREAD_BUSY, relaxed);
        atomic_fetch_add(&me.control->requests, 1);
        run(&me);
        release(&me);
        STORE(me.control->state, REGENT_WIRE_THREAD_IDLE, relaxed);
    }
    STORE(me.control->state, REGENT_WIRE_THREAD_ABSENT, relaxed);
    return NULL;
}

int main(int argc, char **argv) {
    struct stat stat;
    pthread_t threads[REGENT_WIRE_MAX_THREADS];
    if (argc != 4 || prctl(PR_SET_PDEATHSIG, SIGKILL) || fstat(STDIN_FILENO, &stat))
        return 2;
    memory = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, STDIN_FILENO, 0);
    header = (struct regent_wire_header *)memory;
    if (memory == MAP_FAILED || LOAD(header->magic, acquire) != REGENT_WIRE_MAGIC)
        return 3;
    at = regent_wire_layout(header);
    if (at.total > (uint64_t)stat.st_size)
        return 4;
    int first = atoi(argv[1]), end = atoi(argv[2]);
    pool_number = (uint32_t)atoi(argv[3]);
    for (int thread = first; thread < end; thread++)
        if (pthread_create(&threads[thread], NULL, thread_main, (void *)(uintptr_t)thread))
            return 5;
    for (int thread = first; thread < end; thread++)
        pthread_join(threads[thread], NULL);
    return 0;
}
