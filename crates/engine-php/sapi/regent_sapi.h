/*
 * The boundary between PHP and its host: plain C structs and a table of callbacks, no Zend type.
 *
 * The host is the Rust program of this crate, or the small C host of the tests. It starts PHP once, gives it threads,
 * and every thread pulls requests through the callbacks until there are no more.
 *
 * Laws (ARCHITECTURE.md, "Laws of the PHP boundary"): callbacks never call Zend and never unwind; they fill our
 * structs and return a status, and the C side acts on it after the callback's frame has returned. Who allocates
 * frees. Strings are pointer and length. What belongs to a request is valid until release() of that request.
 */
#ifndef REGENT_SAPI_H
#define REGENT_SAPI_H

#include <stddef.h>
#include <stdint.h>

typedef struct regent_str {
    const char *ptr; /* never NULL when len > 0; values of a request are followed by a NUL byte */
    size_t len;
} regent_str;

/* A variable of $_SERVER. key: an index into the well-known names given at start, or REGENT_KEY_OTHER: see name. */
#define REGENT_KEY_OTHER 0xFFFFu
typedef struct regent_var {
    uint32_t key;
    regent_str name;
    regent_str value;
} regent_var;

/* A request, filled by next_request(). Everything in it stays valid and unchanged until release(). */
typedef struct regent_request {
    regent_str method;
    regent_str uri;             /* REQUEST_URI: the original, with the query string */
    regent_str query_string;
    regent_str content_type;    /* len 0: none */
    int64_t content_length;     /* -1: a body of unknown length (chunked); 0: no body */
    regent_str cookie;          /* several Cookie lines are already joined with "; "; len 0: none */
    regent_str authorization;   /* len 0: none */
    regent_str script_filename; /* absolute; resolved by the server */
    regent_str path_translated; /* only with PATH_INFO */
    int proto_num;              /* 1000: HTTP/1.0, 1001: HTTP/1.1, 2000 ... */
    /* $_SERVER, complete but for what is added on PHP's side: the process's environment below it, REQUEST_TIME, argv,
     * PHP_AUTH_..., and PHP_SELF (SCRIPT_NAME and PATH_INFO) unless it is among them. */
    const regent_var *vars;
    size_t n_vars;
    const regent_var *env;      /* the site's `env`: seen by getenv() and $_ENV also; part of vars already */
    size_t n_env;
    int64_t started;            /* when it was taken, in ns of CLOCK_MONOTONIC */
    int64_t time_limit;         /* ns that it may run from then on; 0: without end */
    const uint32_t *given_up;   /* not 0, read atomically and from any thread: its client has left; NULL: it has none */
} regent_request;

/* A part of a response. One call can carry the head, bytes and the end together; the host sends them as one. */
typedef struct regent_emit {
    int has_head;
    int status;                    /* 100..999, checked by the C side */
    const regent_str *headers;     /* whole lines "Name: value", without line end, checked by the C side */
    size_t n_headers;
    regent_str reason;             /* reason phrase of the status line if the script gave one; len 0: none */
    const char *body;
    size_t body_len;
    int informational;             /* 1: the head is a 1xx response; the real head follows */
    int end;                       /* 1: nothing follows; the response is complete */
    int overdue;                   /* with end: it has run for longer than its time_limit; there is neither head nor body */
    int truncated;                 /* with end: the response broke off (PHP could not end it) */
    uint64_t memory;               /* with end: bytes that PHP's memory manager has given out on this thread */
} regent_emit;

/* A request that has run for longer than its time_limit, or whose client has left (departed_after). */
typedef struct regent_overdue {
    uint32_t thread;   /* the host's number of it */
    regent_str script;
    regent_str uri;
    int64_t limit;     /* ns */
    int64_t ran;       /* ns, until now */
    int departed;      /* 1: its client has left, and it stood in a wait for so long as limit says */
    int end;           /* REGENT_END_... */
    regent_str trace;  /* what it was at when its time was over: "#0 sleep()\n#1 {main} /srv/a.php:3"; may be empty */
} regent_overdue;

/* A request that runs for longer than slow_after, and goes on. */
typedef struct regent_slow {
    uint32_t thread;
    regent_str script;
    regent_str uri;
    int64_t ran;       /* ns, until now */
    regent_str trace;  /* as above */
    uint64_t omitted;  /* others since the last one that were not told of: they were too many */
} regent_slow;

/* What it took to end it; each means that those before it did not help. */
enum {
    REGENT_END_OPCODE = 0,      /* PHP ended the script between two opcodes */
    REGENT_END_SIGNAL = 1,      /* a signal broke a system call off */
    REGENT_END_SOCKET = 2,      /* the connection that the thread waited for was shut down */
    REGENT_END_WRITTEN_OFF = 3, /* nothing so far: the host is not to count on the thread */
};

/* What a callback that touches the client returns. */
enum {
    REGENT_OK = 0,
    REGENT_CLIENT_GONE = 1, /* the client has left, or the server gave the request up: what is written is dropped */
};

/* An update for subscribers (mercure_publish()). */
typedef struct regent_publication {
    const regent_str *topics;
    size_t n_topics;
    regent_str data;
    int private_update;
    regent_str id;   /* len 0: one is made */
    regent_str type; /* len 0: none */
    int64_t retry;   /* milliseconds; -1: none */
} regent_publication;

/* Bytes that the id of an update takes which is made for it, with the NUL behind it. */
#define REGENT_UPDATE_ID 64

/* Why an update is not published, but REGENT_OK. */
enum {
    REGENT_PUBLISH_NO_HUB = 1,
    REGENT_PUBLISH_TOPIC = 2,
    REGENT_PUBLISH_DATA = 3,
    REGENT_PUBLISH_ID = 4,
    REGENT_PUBLISH_TYPE = 5,
    REGENT_PUBLISH_TOO_LARGE = 6,
    REGENT_PUBLISH_BUSY = 7, /* the server does not take it */
};

/* Stored responses to be forgotten (regent_cache_purge()): all of these. */
typedef struct regent_purge {
    const regent_str *tags;
    size_t n_tags;
    regent_str url; /* ptr NULL: none */
    regent_str prefix;
} regent_purge;

/* Why they are not, but REGENT_OK. */
enum {
    REGENT_PURGE_NO_CACHE = 1,
    REGENT_PURGE_TAG = 2,
    REGENT_PURGE_URL = 3,
    REGENT_PURGE_PREFIX = 4,
    REGENT_PURGE_TOO_LARGE = 5,
    REGENT_PURGE_BUSY = 6, /* the server does not take it */
    REGENT_PURGE_LATE = 7, /* the server has taken it, and not said in time that it is done */
};

/* Log levels are those of syslog(3), as PHP's own: 0 emerg .. 3 error, 4 warning, 5 notice, 6 info, 7 debug. */
typedef struct regent_callbacks {
    /* Waits for the next request. 1: *out is filled; 0: this thread must end (drain, retire, stop); -1: it is to be renewed,
     * and the function returns REGENT_THREAD_RECYCLE.
     * The first call of a thread also tells the host that its script has booted. */
    int (*next_request)(void *thread, regent_request *out);
    /* Reads the request body: fills the buffer unless the body ends. Returns bytes read, 0 at the end,
     * -1 when the body broke off (client gone, time-out, above the limit). Blocks while the client is slow. */
    int64_t (*read_body)(void *thread, char *buffer, size_t size);
    /* Sends a part of the response; blocks while the response ring is full. */
    int (*emit)(void *thread, const regent_emit *part);
    /* Whether the client has left. Cheap: an atomic load. */
    int (*client_gone)(void *thread);
    /* The request's memory is no longer used: the slot may be given to another. */
    void (*release)(void *thread);
    /* A line for the log. thread may be NULL: start-up, preloading, threads that scripts made. Never blocks long.
     * context: a JSON object from frankenphp_log(), or len 0. */
    void (*log)(void *thread, int level, regent_str message, regent_str context);
    /* opcache asked for a restart (opcache_reset(), memory full): wants a new engine generation. script: whose call it was; len
     * 0: nobody's. */
    void (*restart_wanted)(regent_str reason, regent_str script);
    /* A request whose time was over has ended; before its release(). Or its thread is written off: from another thread,
     * and once; the request may still end. */
    void (*overdue)(const regent_overdue *request);
    /* Hands an update to the server; never blocks long. Returns REGENT_OK, with the id in a buffer of REGENT_UPDATE_ID bytes
     * if it was made, or REGENT_PUBLISH_... . thread may be NULL: there is no request. */
    int (*publish)(void *thread, const regent_publication *publication, char *id);
    /* Has responses forgotten; returns when they are, or after some seconds: REGENT_OK, with their number, or
     * REGENT_PURGE_... . thread may be NULL: there is no request. */
    int (*purge)(void *thread, const regent_purge *purge, uint64_t *purged);
    /* A request is slow. From another thread. */
    void (*slow)(const regent_slow *request);
    /* The request that this thread has taken then does not end for now, though its time is over, and may yet: another thread
     * is to take its place. From another thread, and before overdue(). */
    void (*straggles)(uint32_t thread, int64_t started);
    /* What a thread is at, as in regent_slow, asked for by the trace_signal. From another thread. */
    void (*traced)(uint32_t thread, regent_str trace);
} regent_callbacks;

/* How PHP is started. */
typedef struct regent_options {
    int threads;                        /* expected number; more may come */
    const char *ini;                    /* "name=value\n" lines, applied over php.ini; may be NULL */
    const char *software;               /* SERVER_SOFTWARE, as "FrankenPHP (Regent/0.1.0)" */
    const regent_str *well_known;       /* names of $_SERVER keys, by index; interned once */
    size_t n_well_known;
    /* The reserved real-time signal (installed by the C side, no SA_RESTART). Sent to a PHP thread, it ends the request
     * that runs there with a fatal error, if client_gone() says by then that the server has given it up. */
    int interrupt_signal;
    int64_t slow_after;                 /* ns after which a request is told of as slow; 0: never */
    int64_t departed_after;             /* ns that a request whose client has left may stand in a wait; 0: for ever */
    int trace_signal;                   /* asks a process what it is at, which traced() tells; 0: none. Another real-time one */
    int socket;                         /* the host's own, which is never shut down; -1: none */
} regent_options;

/* Starts PHP in this process, once. 0, or -1 with a message for the log (already sent through log()). If PHP has threads,
 * signals are PHP's from then on: all are blocked in the calling thread and those that it makes later, and no signal ends the
 * process but SIGKILL and faults. Otherwise this makes no thread, so that the process can be forked. */
int regent_php_start(const regent_options *options, const regent_callbacks *callbacks);
/* Whether this PHP keeps its state for each thread. If not, one process has one thread at a time that serves requests. */
int regent_php_has_threads(void);
/* Before regent_php_thread() in a process of a PHP without threads, which may have been forked since the start: signals and
 * time limits are this process's now, as above. 0, or -1 as above. Nothing to do for a PHP with threads. */
int regent_php_enter_process(void);
/* Ends PHP after all threads have ended. */
void regent_php_stop(void);
/* "8.4.24", of the library, on the thread that has started PHP; and whether opcache is on. */
const char *regent_php_version(void);
int regent_php_opcache_enabled(void);
/* The settings that PHP and its extensions have, one by one, on the thread that has started PHP; ptr NULL: no more. */
regent_str regent_php_ini_name(size_t index);

/* A function of PHP by the addresses of its texts: two calls of it in a process have the same. */
typedef struct regent_function {
    const void *name;  /* NULL: the code of a file, outside of functions */
    const void *scope; /* its class; NULL: none */
    const void *file;  /* NULL: it is no function of a script */
    int64_t process;   /* where these addresses mean something */
} regent_function;

/* Functions that a sample holds at most; of more, the outermost are missing. */
#define REGENT_MOST_FUNCTIONS 256

/* What a PHP thread is at. */
typedef struct regent_sample {
    int64_t cpu;        /* ns that the thread has spent on a CPU so far */
    size_t n_functions; /* 0: it runs no script */
    regent_function functions[REGENT_MOST_FUNCTIONS]; /* the innermost first */
    size_t uri_length;
    char uri[256];      /* of its request, may be cut; uri_length 0: it has none */
} regent_sample;

/*
 * Samples a thread by the host's number of it, from another thread; or, where PHP has no threads, the process that is this
 * one, from one that was forked of the same program. Returns 0 if there is none of that number, -1 if the kernel does not let
 * us look. Not from several threads of the host with the same sample.
 */
int regent_php_sample(uint32_t thread, int process, int with_functions, regent_sample *sample);
/* The name ("Class::function") and the file of a function that was sampled a moment ago. They return the bytes, 0 if there
 * is none, or it is gone. */
size_t regent_php_function_name(const regent_function *function, char *text, size_t size);
size_t regent_php_function_file(const regent_function *function, char *text, size_t size);

/* What a PHP thread is at, by the host's number of it, seen from another thread: as regent_overdue.trace. Returns the bytes;
 * 0: it runs no script, or there is no such thread. */
size_t regent_php_trace(uint32_t thread, char *text, size_t size);

/* How a thread runs. */
typedef struct regent_thread_options {
    const char *worker_script;   /* NULL: classic */
    const regent_var *worker_env; /* $_SERVER entries at boot, FRANKENPHP_WORKER=1 among them */
    size_t n_worker_env;
    uint32_t number;              /* the host's, of the thread */
} regent_thread_options;

/* Why a thread ended. */
enum {
    REGENT_THREAD_STOPPED = 0,       /* next_request() returned 0 */
    REGENT_THREAD_RECYCLE = 1,       /* next_request() returned -1, or its state is not to be trusted */
    REGENT_WORKER_ENDED = 2,         /* the worker script ended after it had handled requests: start it again */
    REGENT_WORKER_BOOT_FAILED = 3,   /* the worker script ended before it first asked for a request */
    REGENT_THREAD_FAILED = 4,        /* PHP could not set the thread up */
    REGENT_WORKER_CRASHED = 5,       /* as REGENT_WORKER_ENDED, by a fatal error or with an exit status but 0 */
    REGENT_THREAD_WORN_OUT = 6,      /* as REGENT_THREAD_RECYCLE, but the calling thread may not be used for PHP again: a script has
                                        lowered its priority, which cannot be undone, and threads that it makes inherit that */
};

/*
 * Runs one PHP thread on the calling thread (8 MiB of stack or more, and not the one that started PHP) until it ends;
 * returns why. A child that a script forks never returns from here.
 * In worker mode it returns each time the script ends: the host decides when (back-off) to call it again; the
 * thread's PHP state is set up and torn down within the call.
 */
int regent_php_thread(void *thread, const regent_thread_options *options);

#endif
