/*
 * What the files of the SAPI share. Zend types may appear here; the boundary to the host is regent_sapi.h.
 */
#ifndef REGENT_ENGINE_H
#define REGENT_ENGINE_H

#include "compat.h"
#include "regent_sapi.h"

#include <SAPI.h>
#include <dlfcn.h>
#include <locale.h>
#include <php_output.h>
#include <php_variables.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "undo.h"

/*
 * A definition that takes the place of the C library's for libphp and what it loads: a program's own symbols come first.
 * REGENT_NEXT(name) is the C library's.
 */
#define REGENT_INTERPOSED __attribute__((visibility("default")))
#define REGENT_NEXT(name)                                                  \
    ({                                                                     \
        static _Atomic(void *) next_##name;                                \
        void *found_##name = next_##name;                                  \
        if (found_##name == NULL) {                                        \
            next_##name = found_##name = dlsym(RTLD_NEXT, #name);          \
        }                                                                  \
        (__typeof__(&name))found_##name;                                   \
    })

/* ---- What a thread is doing ---------------------------------------------------------------------------------- */

typedef enum regent_phase {
    REGENT_OUTSIDE,  /* no request: a worker boots, waits or ends; output goes to the log */
    REGENT_STARTING, /* PHP takes the request in: body, superglobals, modules */
    REGENT_RUNNING,  /* the script runs and its client gets the output */
    REGENT_FINISHED, /* the request was answered early (frankenphp_finish_request); output is dropped */
    REGENT_ENDING,   /* the script is over; the rest of the body is the host's business */
} regent_phase;

/* The response that a thread collects; small parts travel together (response.c). */
typedef struct regent_response {
    char *body; /* REGENT_BODY_BUFFER bytes, for the life of the thread */
    size_t body_used;
    char *head; /* the header lines, one after the other; grows to the largest response so far */
    size_t head_capacity;
    regent_str *lines;
    size_t lines_capacity;
    size_t n_lines;
    regent_str reason;
    int status;
    bool head_pending; /* the head is known and not sent */
    bool head_sent;
    bool ended;
    bool client_gone;
    bool truncated; /* PHP broke off before it had given all of the output */
    uint64_t memory; /* bytes that the script had at its end, if it has ended; PHP has freed them by the end of the response */
} regent_response;

/* The time limit of what a thread runs (time_limit.c), in nanoseconds of CLOCK_MONOTONIC. */
#define REGENT_NO_DEADLINE INT64_MAX
typedef struct regent_time_limit {
    _Atomic int64_t deadline;
    int64_t signalled_for; /* the deadline that the thread was last told of */
    pthread_t thread;
    pid_t tid;
    pid_t process;
    struct regent_context *context;
    struct regent_time_limit *next;
} regent_time_limit;

/* Bytes of a trace. */
#define REGENT_TRACE 4096
/* How long a thread's request may run (request_limit.c). All but the deadline is the watch's, under its lock. */
typedef struct regent_request_limit {
    _Atomic int64_t deadline;       /* as above; negative: it has passed, and the request is being ended */
    zend_atomic_bool *vm_interrupt; /* the thread's */
    clockid_t cpu_clock;            /* the thread's */
    int64_t cpu;                    /* what it said when the time was over */
    int64_t next;                   /* when the watch tries again */
    int attempts;                   /* since PHP last came to an opcode */
    int end;                        /* REGENT_END_..., so far */
    bool is_replaced;               /* the host counts on another thread in its place */
    bool has_last_words;            /* the script was ended; its shutdown functions have time until then */
    int64_t last_words_end;
    _Atomic int64_t slow_at;        /* when the request is slow; REGENT_NO_DEADLINE: it is not, or known to be; negative:
                                       the watch looks at it */
    _Atomic int64_t look_at;        /* when the watch looks whether its client has left; values as those of slow_at */
    int looks;                      /* in a row that found it in a wait, and its client gone; -1: not the last one */
    int64_t look_cpu;               /* what the thread's clock said at the last one */
    bool is_departed;               /* that is why it is being ended */
    bool outlives_clients;          /* as php.ini says it: ignore_user_abort */
    _Atomic bool goes_on;           /* the same of this request: it was not told to end with its client */
    char *trace;                    /* REGENT_TRACE bytes, what the thread was at when its time was over; NULL: not yet */
    size_t trace_length;
} regent_request_limit;

/* The directory that a thread's last script lay in (request.c). */
typedef struct regent_directory {
    char *path; /* as the script's name has it, and its length */
    size_t length;
    char *resolved; /* as PHP resolved it */
    size_t resolved_length;
    time_t entered; /* the second of CLOCK_MONOTONIC when it was there; -1: there is none */
} regent_directory;

/* What PHP may not call while a request starts (set_aside.c). */
typedef struct regent_aside {
    bool is_set;
    zval error_handler;
    zval exception_handler;
    bool collects_cycles;
    bool follows_uploads;
} regent_aside;

/* What a worker script keeps between requests (worker.c). */
typedef struct regent_worker {
    regent_aside aside;
    HashTable *boot_shutdown_functions; /* set aside while a request runs */
    zend_array *last_server;            /* $_SERVER of the last request, to make the next one of (server_vars.c) */
    size_t boot_ticks;                  /* functions for ticks, of outside of the request */
    bool boot_opened_log;               /* openlog() was called outside of the request */
    bool searches;                      /* mb_ereg_search_init() was called during the request */
    zend_resource *directory;           /* what the request opened last with opendir(); NULL: nothing */
    time_t opcache_clock;               /* what opcache takes for the present */
    zend_long boot_time_limit;          /* max_execution_time as the script left it when it asked for its first request */
    bool asked;                         /* it has asked for a request: it is ready */
    bool stopping;                      /* there are no more requests for it */
} regent_worker;

/* A PHP thread that serves requests. */
typedef struct regent_context {
    void *thread; /* the host's */
    const regent_thread_options *options;
    regent_phase phase;
    regent_request request;
    regent_response response;
    regent_worker worker;
    HashTable *env_boot;    /* putenv() by a worker script outside of requests; NULL: none */
    HashTable *env_request; /* putenv() during this request; NULL: none */
    uint64_t handled;
    int script_error;  /* errno of the primary script's open(), 0: it is there */
    bool body_broken;  /* the request's body broke off */
    bool renewing;     /* the host wants it started anew */
    bool untrusted;    /* PHP's state in this thread may be damaged: recycle it */
    bool server_filtered;              /* $_SERVER was given to the input filter (server_vars.c) */
    volatile sig_atomic_t interrupted; /* the host gave the running request up (process.c) */
    regent_time_limit time_limit;
    regent_request_limit request_limit;
    zend_execute_data **current_frame; /* the thread's EG(current_execute_data) (trace.c) */
    pid_t last_terminated; /* a child that the thread waited for when its request's time was over (spawn.c), */
    int64_t terminated_at; /* and when it was told to end */
    regent_directory directory;
    regent_former of_script, of_request; /* undo.c */
    struct regent_signals *signals;      /* signals.c; NULL: the scripts of this thread have not touched any */
    regent_locale locale;
    regent_syslog syslog;
    regent_text_domains text_domains; /* text_domain.c */
    bool shares_umask; /* the kernel gave the thread no umask of its own (thread_state.c) */
    bool reaps;        /* a script has ignored SIGCHLD: its children leave no status behind */
    bool worn_out;     /* the kernel's thread has something that cannot be undone: PHP needs another one */
} regent_context;

/*
 * The context of the calling thread, NULL in one that serves no requests: PHP's start-up, and threads that extensions
 * make for scripts. Those inherit SG(server_context) and must not touch another thread's request by it.
 */
extern __thread regent_context *regent_thread_context;

static inline regent_context *regent_current(void)
{
    return regent_thread_context;
}

static inline bool regent_is_worker(const regent_context *context)
{
    return context->options->worker_script != NULL;
}

/* ---- host.c: the callbacks; none of them is called in a forked child ------------------------------------------- */

void regent_host_set(const regent_callbacks *callbacks);
int regent_host_next_request(regent_context *context);
int64_t regent_host_read_body(regent_context *context, char *buffer, size_t size);
int regent_host_emit(regent_context *context, const regent_emit *part);
int regent_host_client_gone(regent_context *context);
void regent_host_release(regent_context *context);
void regent_host_log(regent_context *context, int level, regent_str message, regent_str json);
void regent_host_log_line(int level, const char *message);
/* asked_by: whose script; NULL: nobody's. */
void regent_host_restart_wanted(const char *reason, const regent_context *asked_by);
/* Tells how the running request was ended, whose time was over: end is a REGENT_END_... */
void regent_host_overdue(const regent_context *context, int end);
/* Tells that the running request does not end for now, though its time is over. */
void regent_host_straggles(const regent_context *context);
void regent_host_traced(const regent_context *context, regent_str trace);
int regent_host_publish(regent_context *context, const regent_publication *publication, char *id);

int regent_host_purge(regent_context *context, const regent_purge *purge, uint64_t *purged);
/* Tells of a request that runs for long, with what it is at, and how many before it were not told of. */
void regent_host_slow(const regent_context *context, regent_str trace, uint64_t omitted);

/* ---- mercure.c, cache.c -------------------------------------------------------------------------------------- */

ZEND_FUNCTION(mercure_publish);
ZEND_FUNCTION(regent_cache_purge);
/* Takes the texts of the first argument, an array; false, with an exception, if something else is in it. */
bool regent_take_texts(HashTable *list, regent_str *texts);

/* ---- module.c ------------------------------------------------------------------------------------------------ */

extern zend_module_entry regent_module_entry;

/* ---- thread.c, request.c, worker.c --------------------------------------------------------------------------- */

/* Serves until there is no more to do; returns a REGENT_THREAD_... or REGENT_WORKER_... value. */
int regent_serve_classic(regent_context *context);
int regent_serve_worker(regent_context *context);

/* Points SG(request_info) into the request, and back to nothing before the host reuses its memory. */
void regent_request_attach(regent_context *context);
void regent_request_detach(regent_context *context);
/* What sapi_activate() and the module's request shutdown leave to us. */
int regent_request_activate(void);
void regent_request_module_shutdown(regent_context *context);
/* Runs a file as the primary script; php_request_startup() has succeeded. */
void regent_run_script(regent_context *context, const char *filename);
void regent_directory_free(regent_directory *directory);
/* php_request_startup() and php_request_shutdown(), without PHP's timer and guarded. */
zend_result regent_php_request_startup(regent_context *context);
void regent_php_request_shutdown(regent_context *context);

size_t regent_read_post(char *buffer, size_t size);
char *regent_read_cookies(void);
void regent_script_open_hook_install(void);

ZEND_FUNCTION(frankenphp_handle_request);
/* ---- worker_modules.c, session.c ----------------------------------------------------------------------------- */

/* When all extensions are loaded. */
void regent_modules_find(void);
void regent_session_find(void);
/* What is of one request of a worker in PHP's modules begins and ends. */
void regent_modules_start(regent_context *context);
void regent_modules_end(regent_context *context);
void regent_module_shut_down(const zend_module_entry *module);
void regent_session_start(void);
/* The progress of uploads is left out where save handlers of the script would write it. Whether it was followed. */
bool regent_session_leave_uploads(void);
void regent_session_follow_uploads(void);
void regent_session_end(void);
/* The same at the end of a script, whose save handlers need not be kept. */
void regent_session_shut_down(void);

/* ---- body_stream.c -------------------------------------------------------------------------------------------- */

/* Ends the stream behind php://input and all that is open on it, outside of requests as well. */
void regent_body_stream_free(void);

/* ---- set_aside.c ---------------------------------------------------------------------------------------------- */

/* A worker script's error handlers and destructors wait until its request has been taken in. */
void regent_set_aside(regent_aside *aside);
void regent_put_back(regent_aside *aside);
/* Frees the objects that a script has left in the superglobals, before the next request's take their place. */
void regent_release_superglobals(void);

/* ---- time_limit.c -------------------------------------------------------------------------------------------- */

/* Starts and ends the thread that looks after the limits; 0, or -1. */
int regent_time_limits_start(int interrupt_signal);
void regent_time_limits_stop(void);
/* Makes set_time_limit() and ini_set() move the deadline; called once, at start-up. */
void regent_time_limit_watch_ini(void);
/* Between a thread's ts_resource(0) and its end. */
void regent_time_limit_enter_thread(regent_context *context);
void regent_time_limit_leave_thread(regent_context *context);
/* Keep php_request_startup() from making and arming a timer: before it, and in sapi_activate(). */
void regent_time_limit_before_startup(regent_context *context);
void regent_time_limit_during_startup(void);
/* From now on the thread has so many seconds, without end if 0; zend_set_timeout() has noted them. And the end of it. */
void regent_time_limit_begin(regent_context *context, zend_long seconds);
void regent_time_limit_end(regent_context *context);
/* In the handler of the reserved signal: whether the thread's time is over; PHP is told then. */
bool regent_time_limit_reached(regent_context *context);

/* The watch: its lock, and its signal to a thread; it looks at all limits by then. */
int64_t regent_now(void);
/* Tells the host what each thread is at. */
void regent_watch_tell_traces(void);
void regent_watch_lock(void);
void regent_watch_unlock(void);
void regent_watch_signal(const regent_context *context);
void regent_watch_look_by(int64_t deadline);

/* ---- request_limit.c ----------------------------------------------------------------------------------------- */

/* Nanoseconds after which a request is slow, and that one whose client has left may stand in a wait; 0: none is, and for ever. */
void regent_request_limit_start(int64_t slow_after, int64_t departed_after);
/* Makes ignore_user_abort() known to the watch; called once, at start-up. */
void regent_request_limit_watch_ini(void);
void regent_request_limit_enter_thread(regent_context *context);
void regent_request_limit_leave_thread(regent_context *context);
/* When the host has given the request, and before its memory goes. */
void regent_request_limit_begin(regent_context *context);
void regent_request_limit_end(regent_context *context);
/* The client has its response; a request that is overdue already stays so. */
void regent_request_limit_lift(regent_context *context);
bool regent_request_limit_is_over(const regent_context *context);
/* What it has exceeded, in nanoseconds. */
int64_t regent_request_limit_of(const regent_context *context);
/* Between two opcodes: ends the script of a request whose time is over. */
void regent_request_limit_at_opcode(regent_context *context);
/* In the watch: returns when to look again. */
int64_t regent_request_limit_look(regent_context *context, int64_t now);

/* ---- trace.c ------------------------------------------------------------------------------------------------- */

/* What another thread is at, a line for each of its PHP functions; returns the bytes, 0 if that cannot be seen. */
size_t regent_trace(const regent_context *context, char *text, size_t size);
/* Copies memory that may not be there any more: false. And that of another process. */
bool regent_peek(void *to, const void *from, size_t size);
bool regent_peek_into(pid_t process, void *to, const void *from, size_t size);

/* ---- sample.c ------------------------------------------------------------------------------------------------ */

/* What another thread is at; if it is another process, the context is a copy. The watch's lock is held. */
void regent_sample_take(const regent_context *context, pid_t process, bool with_functions, regent_sample *sample);

/* ---- waiting_socket.c ---------------------------------------------------------------------------------------- */

/* The host's socket, which is left alone; -1: none. */
void regent_waiting_socket_start(int socket);
/* Whether a thread of this process is in a system call, as far as the kernel says. */
bool regent_waits_in_kernel(pid_t thread);
/* Shuts down what a thread of this process waits for, if that is a connection; says whether it was. */
bool regent_waiting_socket_shut_down(pid_t thread);

/* ---- server_vars.c ------------------------------------------------------------------------------------------- */

void regent_server_vars_start(const regent_options *options);
void regent_register_server_variables(zval *array);
/* Before a worker script's memory goes. */
void regent_server_vars_forget(regent_context *context);
void regent_server_vars_override_functions(void);
/* The name of the header that a variable stands for ("Accept-Language"), NULL if it stands for none. */
zend_string *regent_header_name(const regent_var *var);

/* ---- response.c ---------------------------------------------------------------------------------------------- */

bool regent_response_allocate(regent_response *response);
void regent_response_free(regent_response *response);
void regent_response_begin(regent_response *response);
/* Sends what is left, and the end. Nothing may be written after it. */
void regent_response_end(regent_context *context);
/* Answers with a status and no body if nothing was sent yet. */
void regent_response_fail(regent_context *context, int status);
size_t regent_ub_write(const char *bytes, size_t size);
void regent_flush(void *server_context);
int regent_send_headers(sapi_headers_struct *headers);
/* Sends the headers so far as an informational (1xx) response. */
int regent_send_informational(regent_context *context, int status);

/* ---- ini.c --------------------------------------------------------------------------------------------------- */

void regent_ini_defaults(HashTable *configuration);

/* ---- env.c --------------------------------------------------------------------------------------------------- */

void regent_env_start(void);
void regent_env_override_functions(void);
/* The environment of the process as an array with room for the request's variables; the caller owns it. */
zend_array *regent_env_base_copy(void);
/* How many entries that array begins with. */
uint32_t regent_env_base_size(void);
void regent_env_free(HashTable **layer);
char *regent_getenv(const char *name, size_t name_len);
/* The environment of this thread's child processes, or NULL if it is that of the process; freed in one free(). */
char **regent_env_for_children(void);

/* ---- process.c ----------------------------------------------------------------------------------------------- */

bool regent_in_forked_child(void);
/* The mask and the environment of this thread's child processes are made right in spawn.c and at fork(). */
int regent_process_start(int interrupt_signal, int trace_signal);
/* Makes PHP look, between two opcodes, whether the host has given the request up; called once, at start-up. */
void regent_process_install_interrupt(void);
void regent_process_enter_thread(regent_context *context);
void regent_process_leave_thread(regent_context *context);
_Noreturn void regent_process_exit_child(int status);

/* The context of the calling thread, NULL also in a forked child, which may do to its own process what it likes. */
static inline regent_context *regent_guarded(void)
{
    return regent_in_forked_child() ? NULL : regent_current();
}

/* ---- signals.c ----------------------------------------------------------------------------------------------- */

/* Blocks all signals in the calling thread for good, so in those that it starts from now on, and hands them to a thread
 * of ours; 0, or -1. */
int regent_signals_start(int interrupt_signal, int trace_signal);
void regent_signals_stop(void);
void regent_signals_enter_thread(void);
void regent_signals_leave_thread(regent_context *context);
/* Ends the alarm, drops what is pending and sets what the script blocks; or forgets all that the script has set, too. */
void regent_signals_end_request(regent_context *context, uint64_t blocked);
void regent_signals_reset(regent_context *context);
/* Whether the script ignores it. */
bool regent_signals_ignored(const regent_context *context, int number);
/* In a forked child of a PHP thread, or of another one (NULL). */
void regent_signals_in_child(const regent_context *context);

/* ---- locale.c, syslog.c, text_domain.c, thread_state.c ------------------------------------------------------- */

/* Around fork(): no other thread is in the middle of these. */
void regent_locale_lock(void);
void regent_locale_unlock(void);
void regent_syslog_lock(void);
void regent_syslog_unlock(void);

/* Goes back to a locale that was the thread's (0: that of the process), and owns it. */
void regent_locale_restore(regent_context *context, locale_t former);
void regent_locale_free(regent_context *context);
void regent_text_domains_restore(regent_context *context, const regent_text_domains *former);
void regent_thread_state_enter(regent_context *context);
void regent_thread_state_restore(regent_context *context, const regent_former *former);
/* Collects the children whose script did not want their status. */
void regent_thread_state_reap(regent_context *context);

/* ---- pcntl.c ------------------------------------------------------------------------------------------------- */

/* Sets the handlers again that were there before the request. */
void regent_pcntl_restore(HashTable *handlers);
void regent_pcntl_override_functions(void);

/* ---- undo.c -------------------------------------------------------------------------------------------------- */

/* Called when a script changes something of its thread: where to keep how it was before, NULL if that is known. */
regent_former *regent_touch(regent_context *context, unsigned what);
/* When a worker script's request is over; before a script's memory goes; when PHP has ended it. */
void regent_undo_request(regent_context *context);
void regent_undo_before_shutdown(regent_context *context);
void regent_undo_script(regent_context *context);
void regent_undo_override_functions(void);

/* ---- opcache.c ----------------------------------------------------------------------------------------------- */

void regent_opcache_before_startup(void);
void regent_opcache_after_startup(void);
void regent_opcache_override_functions(void);
/* At the end of each request: asks opcache whether it wants a restart, where it does not tell by itself. */
void regent_opcache_poll(void);

/* ---- functions.c --------------------------------------------------------------------------------------------- */

extern const zend_function_entry regent_functions[];
void regent_register_constants(int module_number);
/* Replaces the implementation of a built-in function; returns the former one, NULL if there is none. */
zif_handler regent_override_function(const char *name, zif_handler handler);

ZEND_TSRMLS_CACHE_EXTERN()

#endif
