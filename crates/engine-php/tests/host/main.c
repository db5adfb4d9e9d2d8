/*
 * A small host for the SAPI: requests come from a scenario file, responses and log lines are printed as events, one a
 * line, in the order of their arrival:
 *
 *   ready                          a thread asked for its first request
 *   N head STATUS REASON           of request N, counted from 0
 *   N header LINE
 *   N informational STATUS
 *   N body BYTES                   escaped as in the scenario
 *   N end | N end truncated
 *   log LEVEL MESSAGE | CONTEXT
 *   restart REASON                 opcache wants a new engine
 *   thread REASON                  a thread has ended (the number of regent_php_thread())
 *   total REQUESTS NANOSECONDS_PER_REQUEST RESIDENT_KIB_AT_A_TENTH RESIDENT_KIB_AT_THE_END
 */
#include "scenario.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* One PHP thread and the request that it serves. */
typedef struct worker_thread {
    pthread_t thread;
    regent_thread_options options;
    planned *plan;
    long number;
    size_t body_read;
    int64_t received;
    _Atomic bool gone;
    _Atomic long serving; /* number + 1 of the request, 0: none */
    bool ready;
    uint64_t served; /* requests since its script began */
} worker_thread;

static scenario the_scenario;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t next_plan;
static long next_repeat, started, ended;
static long kib_at_a_tenth;
static int interrupt_signal;

/* ---- Printing ------------------------------------------------------------------------------------------------------ */

static void print_escaped(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\n') {
            fputs("\\n", stdout);
        } else if (c == '\\') {
            fputs("\\\\", stdout);
        } else if (c < ' ' || c >= 0x7f) {
            printf("\\x%02x", c);
        } else {
            putchar(c);
        }
    }
}

static void print_line(const char *prefix, const char *bytes, size_t size)
{
    fputs(prefix, stdout);
    print_escaped(bytes, size);
    putchar('\n');
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm != NULL) {
        if (fscanf(statm, "%*d %ld", &pages) != 1) {
            pages = 0;
        }
        fclose(statm);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static long total_requests(void)
{
    long total = 0;
    for (size_t i = 0; i < the_scenario.n_requests; i++) {
        total += the_scenario.requests[i].repeat;
    }
    return total;
}

/* ---- The host gives a request up ------------------------------------------------------------------------------------- */

static void wait_milliseconds(int64_t milliseconds)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

static void *interrupt_later(void *argument)
{
    worker_thread *self = argument;
    long mine = self->serving;
    wait_milliseconds(self->plan->interrupted_after);
    if (self->serving == mine) {
        self->gone = true;
        pthread_kill(self->thread, interrupt_signal);
    }
    return NULL;
}

/* ---- The callbacks --------------------------------------------------------------------------------------------------- */

static planned *take_plan(long *number)
{
    if (next_plan >= the_scenario.n_requests) {
        return NULL;
    }
    planned *plan = &the_scenario.requests[next_plan];
    while (plan->after_others && started != ended) {
        pthread_cond_wait(&changed, &lock);
    }
    *number = started++;
    if (++next_repeat == plan->repeat) {
        next_repeat = 0;
        next_plan++;
    }
    return plan;
}

static int next_request(void *thread, regent_request *out)
{
    worker_thread *self = thread;
    pthread_mutex_lock(&lock);
    if (!self->ready) {
        self->ready = true;
        puts("ready");
    }
    if (the_scenario.max_requests != 0 && self->served >= the_scenario.max_requests) {
        self->served = 0;
        pthread_mutex_unlock(&lock);
        return -1;
    }
    self->served++;
    self->plan = take_plan(&self->number);
    if (self->plan != NULL && started == total_requests() / 10) {
        kib_at_a_tenth = resident_kib();
    }
    pthread_mutex_unlock(&lock);
    if (self->plan == NULL) {
        return 0;
    }
    wait_milliseconds(self->plan->idle_before);
    self->body_read = 0;
    self->received = 0;
    self->gone = self->plan->leaves_after == 0;
    self->serving = self->number + 1;
    *out = self->plan->request;
    if (self->plan->interrupted_after >= 0) {
        pthread_t timer;
        pthread_create(&timer, NULL, interrupt_later, self);
        pthread_detach(timer);
    }
    return 1;
}

static int64_t read_body(void *thread, char *buffer, size_t size)
{
    worker_thread *self = thread;
    const planned *plan = self->plan;
    size_t left = plan->body_size - self->body_read;
    if (plan->body_breaks_at >= 0 && self->body_read + size > (size_t)plan->body_breaks_at) {
        return -1;
    }
    size_t n = size < left ? size : left;
    memcpy(buffer, plan->body + self->body_read, n);
    self->body_read += n;
    return (int64_t)n;
}

static void print_part(long number, const regent_emit *part)
{
    if (part->has_head) {
        printf("%ld %s %d ", number, part->informational ? "informational" : "head", part->status);
        print_line("", part->reason.ptr, part->reason.len);
        for (size_t i = 0; i < part->n_headers; i++) {
            printf("%ld ", number);
            print_line("header ", part->headers[i].ptr, part->headers[i].len);
        }
    }
    if (part->body_len > 0) {
        printf("%ld ", number);
        print_line("body ", part->body, part->body_len);
    }
    if (part->end) {
        printf("%ld end%s\n", number, part->overdue ? " overdue" : part->truncated ? " truncated" : "");
    }
}

static int emit(void *thread, const regent_emit *part)
{
    worker_thread *self = thread;
    if (self->gone) {
        return REGENT_CLIENT_GONE;
    }
    if (!the_scenario.quiet) {
        pthread_mutex_lock(&lock);
        print_part(self->number, part);
        pthread_mutex_unlock(&lock);
    }
    self->received += (int64_t)part->body_len;
    if (self->plan->leaves_after >= 0 && self->received >= self->plan->leaves_after) {
        self->gone = true;
    }
    return REGENT_OK;
}

static int client_gone(void *thread)
{
    return ((worker_thread *)thread)->gone;
}

static void release(void *thread)
{
    worker_thread *self = thread;
    self->serving = 0;
    pthread_mutex_lock(&lock);
    ended++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void log_line(void *thread, int level, regent_str message, regent_str context)
{
    (void)thread;
    pthread_mutex_lock(&lock);
    printf("log %d ", level);
    print_escaped(message.ptr, message.len);
    if (context.len > 0) {
        fputs(" | ", stdout);
        print_escaped(context.ptr, context.len);
    }
    putchar('\n');
    pthread_mutex_unlock(&lock);
}

static void restart_wanted(regent_str reason, regent_str script)
{
    (void)script;
    pthread_mutex_lock(&lock);
    print_line("restart ", reason.ptr, reason.len);
    pthread_mutex_unlock(&lock);
}

static void overdue(const regent_overdue *request)
{
    pthread_mutex_lock(&lock);
    printf("overdue %d ", request->end);
    print_line("", request->uri.ptr, request->uri.len);
    pthread_mutex_unlock(&lock);
}

/* Every update but one of the topic "no hub" is taken. */
static int publish(void *thread, const regent_publication *publication, char *id)
{
    (void)thread;
    const regent_str *topic = &publication->topics[0];
    if (publication->n_topics == 0 || (topic->len == 6 && memcmp(topic->ptr, "no hub", 6) == 0)) {
        return publication->n_topics == 0 ? REGENT_PUBLISH_TOPIC : REGENT_PUBLISH_NO_HUB;
    }
    pthread_mutex_lock(&lock);
    printf("log 6 publish %zu %d %lld ", publication->n_topics, publication->private_update, (long long)publication->retry);
    print_escaped(publication->data.ptr, publication->data.len);
    putchar('\n');
    pthread_mutex_unlock(&lock);
    snprintf(id, REGENT_UPDATE_ID, "urn:made");
    return REGENT_OK;
}

/* Each tag stands for a response; that of a URL or a prefix is refused. */
static int purge(void *thread, const regent_purge *purge, uint64_t *purged)
{
    if (thread == NULL || purge->url.ptr != NULL || purge->prefix.ptr != NULL) {
        return thread == NULL ? REGENT_PURGE_NO_CACHE : purge->url.ptr != NULL ? REGENT_PURGE_URL : REGENT_PURGE_LATE;
    }
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < purge->n_tags; i++) {
        print_line("log 6 purge ", purge->tags[i].ptr, purge->tags[i].len);
    }
    pthread_mutex_unlock(&lock);
    *purged = purge->n_tags;
    return REGENT_OK;
}

static void slow(const regent_slow *request)
{
    pthread_mutex_lock(&lock);
    print_line("slow ", request->uri.ptr, request->uri.len);
    pthread_mutex_unlock(&lock);
}

static void straggles(uint32_t thread, int64_t started)
{
    (void)thread, (void)started;
    pthread_mutex_lock(&lock);
    puts("straggles");
    pthread_mutex_unlock(&lock);
}

static void traced(uint32_t thread, regent_str trace)
{
    (void)thread;
    pthread_mutex_lock(&lock);
    print_line("traced ", trace.ptr, trace.len);
    pthread_mutex_unlock(&lock);
}

static const regent_callbacks callbacks = {
    .next_request = next_request,
    .read_body = read_body,
    .emit = emit,
    .client_gone = client_gone,
    .release = release,
    .log = log_line,
    .restart_wanted = restart_wanted,
    .overdue = overdue,
    .publish = publish,
    .purge = purge,
    .slow = slow,
    .straggles = straggles,
    .traced = traced,
};

/* ---- Threads ----------------------------------------------------------------------------------------------------------- */

static void *run_thread(void *argument)
{
    worker_thread *self = argument;
    for (int starts = 0;; starts++) {
        int reason = regent_php_thread(self, &self->options);
        pthread_mutex_lock(&lock);
        printf("thread %d\n", reason);
        pthread_mutex_unlock(&lock);
        bool again = reason == REGENT_THREAD_RECYCLE || reason == REGENT_WORKER_ENDED || reason == REGENT_WORKER_BOOT_FAILED ||
                     reason == REGENT_WORKER_CRASHED;
        if (!again || starts >= the_scenario.restarts) {
            return NULL;
        }
    }
}

/* Without threads PHP takes the stack that it was started on for that of its scripts, as in the engine (zend_call_stack_init()). */
static void run_all(worker_thread *threads)
{
    if (!regent_php_has_threads()) {
        threads[0].thread = pthread_self();
        run_thread(&threads[0]);
        return;
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16u << 20);
    for (int i = 0; i < the_scenario.threads; i++) {
        pthread_create(&threads[i].thread, &attributes, run_thread, &threads[i]);
    }
    for (int i = 0; i < the_scenario.threads; i++) {
        pthread_join(threads[i].thread, NULL);
    }
    pthread_attr_destroy(&attributes);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s SCENARIO\n", argv[0]);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    scenario_read(argv[1], &the_scenario);
    interrupt_signal = SIGRTMIN + 3;
    regent_options options = {
        .threads = the_scenario.threads,
        .ini = the_scenario.ini,
        .software = "Regent/test",
        .well_known = well_known_names,
        .n_well_known = n_well_known_names,
        .interrupt_signal = interrupt_signal,
        .socket = -1,
    };
    if (regent_php_start(&options, &callbacks) != 0 || regent_php_enter_process() != 0) {
        return 1;
    }
    if (!regent_php_has_threads() && the_scenario.threads > 1) {
        fputs("this PHP has no threads: one serves all requests\n", stderr);
        the_scenario.threads = 1;
    }
    worker_thread *threads = calloc((size_t)the_scenario.threads, sizeof(worker_thread));
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < the_scenario.threads; i++) {
        threads[i].options = (regent_thread_options){
            .worker_script = the_scenario.worker,
            .worker_env = the_scenario.worker_env,
            .n_worker_env = the_scenario.n_worker_env,
        };
    }
    run_all(threads);
    clock_gettime(CLOCK_MONOTONIC, &end);
    long ns = (end.tv_sec - begin.tv_sec) * 1000000000L + (end.tv_nsec - begin.tv_nsec);
    printf("total %ld %ld %ld %ld\n", ended, ended > 0 ? ns / ended : 0, kib_at_a_tenth, resident_kib());
    fflush(stdout);
    regent_php_stop();
    free(threads);
    return 0;
}
