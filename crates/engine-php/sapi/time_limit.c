/*
 * max_execution_time, and the watch, which looks after request_timeout too (request_limit.c). PHP arms and disarms a timer of the kernel for each request (zend_set_timeout(),
 * zend_unset_timeout()). Here a thread only notes when its time will be over, and one thread for all of them, the
 * watch, sleeps until the earliest of these deadlines. When one has passed it sends the thread the reserved signal,
 * and the thread looks at its deadline itself: only there is it certain that the request is still the same.
 */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static struct {
    pthread_t thread;
    pthread_mutex_t lock; /* guards all but wakes_at's reading */
    pthread_cond_t changed;
    regent_time_limit *limits;
    _Atomic int64_t wakes_at; /* when it will look without being woken; REGENT_NO_DEADLINE also while it looks */
    int signal;
    bool running, stopping;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .wakes_at = REGENT_NO_DEADLINE};

static void *run_watch(void *unused);

static int64_t time_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

/* ---- The watch ------------------------------------------------------------------------------------------------- */

int64_t regent_now(void)
{
    return time_of(CLOCK_MONOTONIC);
}

void regent_watch_lock(void)
{
    pthread_mutex_lock(&watch.lock);
}

void regent_watch_unlock(void)
{
    pthread_mutex_unlock(&watch.lock);
}

void regent_watch_signal(const regent_context *context)
{
    pthread_kill(context->time_limit.thread, watch.signal);
}

int regent_time_limits_start(int interrupt_signal)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;

    watch.signal = interrupt_signal;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.changed, &monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watch.running = pthread_create(&watch.thread, NULL, run_watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return watch.running ? 0 : -1;
}

void regent_time_limits_stop(void)
{
    if (!watch.running) {
        return;
    }
    pthread_mutex_lock(&watch.lock);
    watch.stopping = true;
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    watch.running = watch.stopping = false;
}

/* Sends the signal once for each deadline that has passed; returns when to look at the limit again. */
static int64_t look_at(regent_time_limit *limit, int64_t now)
{
    int64_t deadline = limit->deadline;
    if (deadline <= now && limit->signalled_for != deadline) {
        limit->signalled_for = deadline;
        pthread_kill(limit->thread, watch.signal);
    }
    return deadline > now ? deadline : REGENT_NO_DEADLINE;
}

static int64_t look_at_all(int64_t now)
{
    int64_t earliest = REGENT_NO_DEADLINE;
    for (regent_time_limit *limit = watch.limits; limit != NULL; limit = limit->next) {
        int64_t script = look_at(limit, now), request = regent_request_limit_look(limit->context, now);
        int64_t first = script < request ? script : request;
        earliest = first < earliest ? first : earliest;
    }
    return earliest;
}

/*
 * No deadline is missed: a thread writes its deadline and then reads wakes_at. If it reads what was there before a look
 * began, the look sees the deadline; if it reads REGENT_NO_DEADLINE or a later time, it wakes the watch.
 */
static void *run_watch(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "time-limits");
    pthread_mutex_lock(&watch.lock);
    while (!watch.stopping) {
        watch.wakes_at = REGENT_NO_DEADLINE;
        int64_t next = look_at_all(regent_now());
        watch.wakes_at = next;
        if (next == REGENT_NO_DEADLINE) {
            pthread_cond_wait(&watch.changed, &watch.lock);
        } else {
            struct timespec until = {.tv_sec = next / SECOND, .tv_nsec = next % SECOND};
            pthread_cond_timedwait(&watch.changed, &watch.lock, &until);
        }
    }
    pthread_mutex_unlock(&watch.lock);
    return NULL;
}

void regent_watch_tell_traces(void)
{
    char text[REGENT_TRACE];
    pthread_mutex_lock(&watch.lock); /* none of them ends meanwhile */
    for (regent_time_limit *limit = watch.limits; limit != NULL; limit = limit->next) {
        regent_host_traced(limit->context, (regent_str){text, regent_trace(limit->context, text, sizeof(text))});
    }
    pthread_mutex_unlock(&watch.lock);
}

size_t regent_php_trace(uint32_t thread, char *text, size_t size)
{
    size_t length = 0;
    pthread_mutex_lock(&watch.lock); /* none of them ends meanwhile */
    for (regent_time_limit *limit = watch.limits; limit != NULL; limit = limit->next) {
        if (limit->context->options->number == thread) {
            length = regent_trace(limit->context, text, size);
        }
    }
    pthread_mutex_unlock(&watch.lock);
    return length;
}

#if REGENT_PHP_HAS_THREADS
int regent_php_sample(uint32_t thread, int process, int with_functions, regent_sample *sample)
{
    int found = 0;
    (void)process;
    pthread_mutex_lock(&watch.lock); /* as above */
    for (regent_time_limit *limit = watch.limits; limit != NULL && !found; limit = limit->next) {
        if (limit->context->options->number == thread) {
            regent_sample_take(limit->context, getpid(), with_functions != 0, sample);
            found = 1;
        }
    }
    pthread_mutex_unlock(&watch.lock);
    return found;
}
#else
/* Its watch is where ours is, since both were forked from the same process, and knows its one thread. */
static bool copy_context(pid_t process, regent_context *context)
{
    const regent_time_limit *limit = NULL;
    const regent_context *at = NULL;
    return regent_peek_into(process, &limit, &watch.limits, sizeof(limit)) && limit != NULL &&
           regent_peek_into(process, &at, &limit->context, sizeof(at)) &&
           regent_peek_into(process, context, at, sizeof(*context));
}

int regent_php_sample(uint32_t thread, int process, int with_functions, regent_sample *sample)
{
    static regent_context context; /* the lock's */
    int found = 0;
    (void)thread;
    pthread_mutex_lock(&watch.lock);
    errno = 0;
    if (!copy_context(process, &context)) {
        found = errno == EPERM || errno == ENOSYS ? -1 : 0;
    } else if (clock_getcpuclockid(process, &context.request_limit.cpu_clock) == 0) {
        regent_sample_take(&context, process, with_functions != 0, sample);
        found = 1;
    }
    pthread_mutex_unlock(&watch.lock);
    return found;
}
#endif

/* ---- A thread's limit ------------------------------------------------------------------------------------------ */

void regent_time_limit_enter_thread(regent_context *context)
{
    regent_time_limit *limit = &context->time_limit;
    limit->signalled_for = REGENT_NO_DEADLINE;
    limit->thread = pthread_self();
    limit->tid = (pid_t)syscall(SYS_gettid);
    limit->process = getpid();
    limit->context = context;
    regent_request_limit_enter_thread(context);
    pthread_mutex_lock(&watch.lock);
    limit->next = watch.limits;
    watch.limits = limit;
    pthread_mutex_unlock(&watch.lock);
#ifdef ZEND_MAX_EXECUTION_TIMERS
    if (EG(pid) != 0) {
        timer_delete(EG(max_execution_timer_timer)); /* of zend_new_thread_end_handler() */
        EG(pid) = 0;
    }
#endif
}

void regent_time_limit_leave_thread(regent_context *context)
{
    if (regent_in_forked_child()) {
        return;
    }
    context->time_limit.deadline = REGENT_NO_DEADLINE;
    pthread_mutex_lock(&watch.lock);
    regent_time_limit **link = &watch.limits;
    while (*link != &context->time_limit) {
        link = &(*link)->next;
    }
    *link = context->time_limit.next;
    pthread_mutex_unlock(&watch.lock);
    regent_request_limit_leave_thread(context);
}

void regent_watch_look_by(int64_t deadline)
{
    if (watch.wakes_at <= deadline) {
        return;
    }
    pthread_mutex_lock(&watch.lock);
    if (watch.wakes_at > deadline) {
        watch.wakes_at = deadline;
        pthread_cond_signal(&watch.changed);
    }
    pthread_mutex_unlock(&watch.lock);
}

/*
 * The exact clock: CLOCK_MONOTONIC_COARSE can be more than a tick behind, and the limit would end early. A forked child
 * has no watch; PHP has made it a timer of its own (pcntl_fork()). The bound is that of PHP's timer.
 */
void regent_time_limit_begin(regent_context *context, zend_long seconds)
{
    if (seconds > 0 && seconds <= 999999999 && !regent_in_forked_child()) {
        int64_t deadline = regent_now() + seconds * SECOND;
        context->time_limit.deadline = deadline;
        regent_watch_look_by(deadline);
    }
}

/* The deadline first: without it nothing marks the thread as timed out again. */
void regent_time_limit_end(regent_context *context)
{
    context->time_limit.deadline = REGENT_NO_DEADLINE;
    zend_unset_timeout();
}

bool regent_time_limit_reached(regent_context *context)
{
    if (regent_now() < context->time_limit.deadline) {
        return false;
    }
    context->time_limit.deadline = REGENT_NO_DEADLINE;
    if (zend_on_timeout != NULL) {
        zend_on_timeout((int)EG(timeout_seconds));
    }
    zend_atomic_bool_store_ex(&EG(timed_out), true);
    zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
    return true;
}

/* ---- PHP's own timer --------------------------------------------------------------------------------------------- */

/*
 * While PHP takes no process for the owner of its timer it neither arms nor deletes it (zend_max_execution_timer.c);
 * but init_executor() would make one, unless this process seems to own one already.
 */
void regent_time_limit_before_startup(regent_context *context)
{
#ifdef ZEND_MAX_EXECUTION_TIMERS
    EG(pid) = context->time_limit.process;
#else
    (void)context;
#endif
}

void regent_time_limit_during_startup(void)
{
#ifdef ZEND_MAX_EXECUTION_TIMERS
    EG(pid) = 0;
#endif
}

/* ---- set_time_limit() and ini_set('max_execution_time') ------------------------------------------------------------- */

static ZEND_INI_MH((*next_on_modify));

static ZEND_INI_MH(on_modify)
{
    regent_context *context = regent_current();
    bool by_script = context != NULL && stage == PHP_INI_STAGE_RUNTIME;
    if (by_script) {
        context->time_limit.deadline = REGENT_NO_DEADLINE;
    }
    int result = next_on_modify(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
    if (by_script) {
        regent_time_limit_begin(context, EG(timeout_seconds));
    }
    return result;
}

void regent_time_limit_watch_ini(void)
{
    zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("max_execution_time"));
    next_on_modify = entry->on_modify;
    entry->on_modify = on_modify;
}
