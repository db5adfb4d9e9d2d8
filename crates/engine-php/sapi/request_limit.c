/*
 * request_timeout: how long a request may run, from when its thread took it, whatever it does. The host has said so with
 * the request; the watch (time_limit.c) looks after it. When the time is over PHP ends the script between two opcodes, as
 * at max_execution_time. A thread that has not come so far soon gets the reserved signal, again and again, which breaks a
 * blocking system call off; then the socket that it waits for is shut down, since libraries wait again after a signal.
 * One that does not come back from that is replaced: the host counts on another thread instead, and this one ends if it
 * comes back after all. One that still does not is written off.
 *
 * departed_timeout: a request whose client has left and that does nothing but wait is ended in the same way. The watch looks
 * at each request several times in that time. One that was to outlive its client (ignore_user_abort()) is left alone; what a
 * worker script says of that while it boots concerns its own end, which no client brings about, and no request.
 *
 * The deadline is turned into its negative by the watch alone, and ended by the thread alone, both in one exchange: the
 * watch never takes a request for the one before. From then on until the end of the request all is done under the
 * watch's lock.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>

#define MILLISECOND INT64_C(1000000)
/* Between two attempts. The first are to free the thread's place within 100 ms of the limit. */
#define FIRST_STEP (20 * MILLISECOND)
#define STEP (100 * MILLISECOND)
/* So many attempts in vain, and another thread takes the place of this one. It must have had so much of the CPU by then,
 * unless it sleeps: where all CPUs are busy a thread may need long to come to an opcode. */
#define REPLACE_AFTER 3
#define CPU_TO_REPLACE (20 * MILLISECOND)
/* What shutdown functions and destructors have after the script was ended: PHP has hard_timeout for that. */
#define LAST_WORDS (1000 * MILLISECOND)
/* The same to be written off, for which its engine has to end; but after so many it is whatever the CPUs do. */
#define WRITE_OFF_AFTER 7
#define CPU_TO_WRITE_OFF (200 * MILLISECOND)
#define WRITE_OFF_AT_LATEST 100
/* Between two attempts from then on. */
#define SLOW_STEP (1000 * MILLISECOND)

/* So many looks in a row find a request in a wait, at equal intervals, before it is ended because its client has left: time
 * alone proves nothing of a process that may have been frozen. */
#define DEPARTED_LOOKS 4
/* What is no more than a wait that is begun again and again, as libraries do it: of the time, and besides. */
#define WAITING_CPU_PART 1000
#define WAITING_CPU (1 * MILLISECOND)

/* Slow requests that the host is told of each second, at most. */
#define MOST_SLOW 20

/* But for the first, the watch's own. */
static struct {
    int64_t after; /* 0: no request is slow */
    int64_t second;
    int told;
    uint64_t omitted;
} slow;

/* Between two looks whether a client has left, and what they are for; 0: there are none. */
static int64_t departed_after, departed_step;

void regent_request_limit_start(int64_t slow_after, int64_t after)
{
    slow.after = slow_after;
    departed_after = after;
    departed_step = after > 0 && after < DEPARTED_LOOKS ? 1 : after / DEPARTED_LOOKS;
}

void regent_request_limit_leave_thread(regent_context *context)
{
    free(context->request_limit.trace);
}

void regent_request_limit_enter_thread(regent_context *context)
{
    context->request_limit.vm_interrupt = &EG(vm_interrupt);
    pthread_getcpuclockid(pthread_self(), &context->request_limit.cpu_clock);
    context->current_frame = &EG(current_execute_data);
    context->request_limit.outlives_clients = PG(ignore_user_abort);
}

/* ---- In the thread ---------------------------------------------------------------------------------------------- */

void regent_request_limit_begin(regent_context *context)
{
    const regent_request *request = &context->request;
    if (request->time_limit > 0 && !regent_in_forked_child()) {
        int64_t deadline = request->started + request->time_limit;
        context->request_limit.deadline = deadline;
        regent_watch_look_by(deadline);
    }
    /* Not of a request that is no client's: it has no start. */
    if (slow.after > 0 && request->started > 0 && !regent_in_forked_child()) {
        int64_t slow_at = request->started + slow.after;
        context->request_limit.slow_at = slow_at;
        regent_watch_look_by(slow_at);
    }
    context->request_limit.is_departed = false;
    if (departed_step > 0 && request->given_up != NULL && !regent_in_forked_child()) {
        int64_t look_at = request->started + departed_step;
        context->request_limit.looks = -1;
        context->request_limit.goes_on = context->request_limit.outlives_clients;
        context->request_limit.look_at = look_at;
        regent_watch_look_by(look_at);
    }
}

bool regent_request_limit_is_over(const regent_context *context)
{
    return context->request_limit.deadline < 0;
}

int64_t regent_request_limit_of(const regent_context *context)
{
    return context->request_limit.is_departed ? departed_after : context->request.time_limit;
}

static void wait_for_watch(void)
{
    if (!regent_in_forked_child()) {
        regent_watch_lock();
        regent_watch_unlock();
    }
}

/* Not while the watch looks at the request: its memory goes now. What it finds in such a look it has found by then. */
void regent_request_limit_end(regent_context *context)
{
    regent_request_limit *limit = &context->request_limit;
    bool is_looked_at = slow.after > 0 && atomic_exchange(&limit->slow_at, REGENT_NO_DEADLINE) < 0;
    if (departed_step > 0 && atomic_exchange(&limit->look_at, REGENT_NO_DEADLINE) < 0) {
        is_looked_at = true;
    }
    if (is_looked_at) {
        wait_for_watch();
    }
    bool is_over = atomic_exchange(&limit->deadline, REGENT_NO_DEADLINE) < 0;
    if (!is_over || regent_in_forked_child()) {
        return;
    }
    wait_for_watch();
    if (limit->end != REGENT_END_WRITTEN_OFF) {
        regent_host_overdue(context, limit->end);
    }
}

/* The request is answered. What its script does now is no longer for anybody who waits, as in php-fpm. */
void regent_request_limit_lift(regent_context *context)
{
    int64_t deadline = context->request_limit.deadline;
    if (departed_step > 0 && atomic_exchange(&context->request_limit.look_at, REGENT_NO_DEADLINE) < 0) {
        wait_for_watch();
    }
    if (deadline >= 0) {
        atomic_compare_exchange_strong(&context->request_limit.deadline, &deadline, REGENT_NO_DEADLINE);
    }
}

/* Once, or else between two opcodes of shutdown functions and destructors whose time is over too. */
void regent_request_limit_at_opcode(regent_context *context)
{
    regent_request_limit *limit = &context->request_limit;
    if (!regent_request_limit_is_over(context) || regent_in_forked_child()) {
        return;
    }
    int64_t now = regent_now();
    regent_watch_lock();
    bool may_go_on = limit->has_last_words && now < limit->last_words_end;
    if (!limit->has_last_words && limit->end != REGENT_END_WRITTEN_OFF) {
        limit->attempts = 0;
        limit->next = limit->last_words_end = now + LAST_WORDS;
    }
    limit->has_last_words = true;
    regent_watch_unlock();
    context->interrupted = 0; /* that the host has given the request up is no news */
    if (!may_go_on && limit->is_departed) {
        zend_error_noreturn(E_ERROR, "The client of the request had left, and it stood in a wait for %g s",
                            (double)departed_after / 1e9);
    }
    if (!may_go_on) {
        zend_error_noreturn(E_ERROR, "The request exceeded its request_timeout of %g s",
                            (double)context->request.time_limit / 1e9);
    }
}

/* ---- In the watch, under its lock ---------------------------------------------------------------------------------- */

static int64_t cpu_time(const regent_request_limit *limit)
{
    struct timespec used = {0};
    clock_gettime(limit->cpu_clock, &used);
    return used.tv_sec * 1000 * MILLISECOND + used.tv_nsec;
}

static bool may_be_told(int64_t now)
{
    if (now / (1000 * MILLISECOND) != slow.second) {
        slow.second = now / (1000 * MILLISECOND);
        slow.told = 0;
    }
    if (slow.told == MOST_SLOW) {
        slow.omitted++;
        return false;
    }
    slow.told++;
    return true;
}

/* Tells of a request that has become slow, once; returns when one will be. The request stays marked until its end, which
 * waits for us. */
static int64_t look_whether_slow(regent_context *context, int64_t now)
{
    int64_t slow_at = context->request_limit.slow_at;
    if (slow_at > now || slow_at < 0) {
        return slow_at > now ? slow_at : REGENT_NO_DEADLINE;
    }
    if (atomic_compare_exchange_strong(&context->request_limit.slow_at, &slow_at, -slow_at) && may_be_told(now)) {
        char trace[REGENT_TRACE];
        size_t length = regent_trace(context, trace, sizeof(trace));
        regent_host_slow(context, (regent_str){trace, length}, slow.omitted);
        slow.omitted = 0;
    }
    return REGENT_NO_DEADLINE;
}

static void keep_trace(regent_context *context)
{
    regent_request_limit *limit = &context->request_limit;
    if (limit->trace == NULL) {
        limit->trace = malloc(REGENT_TRACE);
    }
    limit->trace_length = limit->trace != NULL ? regent_trace(context, limit->trace, REGENT_TRACE) : 0;
}

static int64_t end_script(regent_context *context, int64_t now)
{
    regent_request_limit *limit = &context->request_limit;
    keep_trace(context);
    limit->attempts = 0;
    limit->is_replaced = false;
    limit->has_last_words = false;
    limit->last_words_end = 0;
    limit->cpu = cpu_time(limit);
    limit->end = REGENT_END_OPCODE;
    limit->next = now + FIRST_STEP;
    zend_atomic_bool_store_ex(limit->vm_interrupt, true);
    return limit->next;
}

static void came_to(regent_request_limit *limit, int end)
{
    limit->end = limit->end < end ? end : limit->end;
}

static bool has_had_its_chance(const regent_context *context, int64_t cpu)
{
    const regent_request_limit *limit = &context->request_limit;
    return cpu_time(limit) - limit->cpu >= cpu || regent_waits_in_kernel(context->time_limit.tid);
}

static bool does_not_come_back_soon(const regent_context *context)
{
    return context->request_limit.attempts >= REPLACE_AFTER && has_had_its_chance(context, CPU_TO_REPLACE);
}

static bool does_not_come_back(const regent_context *context)
{
    int attempts = context->request_limit.attempts;
    return attempts >= WRITE_OFF_AT_LATEST ||
           (attempts >= WRITE_OFF_AFTER && has_had_its_chance(context, CPU_TO_WRITE_OFF));
}

static int64_t step_after(const regent_request_limit *limit)
{
    if (limit->end == REGENT_END_WRITTEN_OFF) {
        return SLOW_STEP;
    }
    return limit->attempts < REPLACE_AFTER ? FIRST_STEP : STEP;
}

static int64_t insist(regent_context *context, int64_t now)
{
    regent_request_limit *limit = &context->request_limit;
    limit->attempts++;
    limit->next = now + step_after(limit);
    zend_atomic_bool_store_ex(limit->vm_interrupt, true);
    if (limit->attempts > 1 && regent_waiting_socket_shut_down(context->time_limit.tid)) {
        came_to(limit, REGENT_END_SOCKET);
    } else {
        came_to(limit, REGENT_END_SIGNAL);
        regent_watch_signal(context);
    }
    if (!limit->is_replaced && does_not_come_back_soon(context)) {
        limit->is_replaced = true;
        regent_host_straggles(context);
    }
    if (limit->end != REGENT_END_WRITTEN_OFF && does_not_come_back(context)) {
        came_to(limit, REGENT_END_WRITTEN_OFF);
        regent_host_overdue(context, limit->end);
    }
    return limit->next;
}

static bool has_waited_since_last_look(regent_context *context)
{
    regent_request_limit *limit = &context->request_limit;
    int64_t before = limit->look_cpu, now = cpu_time(limit);
    limit->look_cpu = now;
    return now - before <= departed_step / WAITING_CPU_PART + WAITING_CPU && regent_waits_in_kernel(context->time_limit.tid);
}

static bool has_departed(regent_context *context)
{
    regent_request_limit *limit = &context->request_limit;
    bool has_waited = has_waited_since_last_look(context);
    if (limit->goes_on || __atomic_load_n(context->request.given_up, __ATOMIC_ACQUIRE) == 0) {
        limit->looks = -1;
    } else {
        limit->looks = limit->looks >= 0 && has_waited ? limit->looks + 1 : 0;
    }
    return limit->looks >= DEPARTED_LOOKS;
}

/* Begins to end a request whose client has left and that does nothing but wait; returns when to look again. */
static int64_t look_whether_departed(regent_context *context, int64_t now)
{
    regent_request_limit *limit = &context->request_limit;
    int64_t look_at = limit->look_at;
    if (look_at > now || look_at < 0) {
        return look_at > now ? look_at : REGENT_NO_DEADLINE;
    }
    int64_t looks = -look_at, next = now + departed_step;
    if (!atomic_compare_exchange_strong(&limit->look_at, &look_at, looks)) {
        return REGENT_NO_DEADLINE;
    }
    int64_t deadline = limit->deadline;
    if (deadline >= 0 && has_departed(context)) {
        limit->is_departed = true; /* the thread reads it when it sees the deadline */
        limit->is_departed = atomic_compare_exchange_strong(&limit->deadline, &deadline, -deadline);
        next = limit->is_departed ? end_script(context, now) : REGENT_NO_DEADLINE;
    }
    atomic_compare_exchange_strong(&limit->look_at, &looks, next);
    return next;
}

static int64_t look_whether_over(regent_context *context, int64_t now)
{
    regent_request_limit *limit = &context->request_limit;
    int64_t deadline = limit->deadline;
    if (deadline >= 0) {
        bool is_over = deadline <= now && atomic_compare_exchange_strong(&limit->deadline, &deadline, -deadline);
        return is_over ? end_script(context, now) : deadline;
    }
    return limit->next <= now ? insist(context, now) : limit->next;
}

int64_t regent_request_limit_look(regent_context *context, int64_t now)
{
    int64_t slow_at = look_whether_slow(context, now), look_at = look_whether_departed(context, now);
    int64_t over_at = look_whether_over(context, now);
    int64_t first = slow_at < look_at ? slow_at : look_at;
    return first < over_at ? first : over_at;
}

/* ---- ignore_user_abort() ------------------------------------------------------------------------------------------------ */

static ZEND_INI_MH((*next_on_modify));

static ZEND_INI_MH(on_modify)
{
    regent_context *context = regent_current();
    int result = next_on_modify(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
    if (context != NULL && stage == PHP_INI_STAGE_RUNTIME && context->phase != REGENT_OUTSIDE) {
        context->request_limit.goes_on = PG(ignore_user_abort);
    }
    return result;
}

void regent_request_limit_watch_ini(void)
{
    zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("ignore_user_abort"));
    next_on_modify = entry->on_modify;
    entry->on_modify = on_modify;
}

/* ---- Locks ---------------------------------------------------------------------------------------------------------- */

/* ext/session asks again when a signal has ended its wait for the session's file (mod_files.c). */
REGENT_INTERPOSED int flock(int descriptor, int operation)
{
    int result = REGENT_NEXT(flock)(descriptor, operation);
    const regent_context *context = regent_current();
    if (result != 0 && errno == EINTR && context != NULL && regent_request_limit_is_over(context)) {
        errno = ETIMEDOUT;
    }
    return result;
}
