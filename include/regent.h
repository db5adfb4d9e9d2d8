/* Regent's interface for compiled modules: handlers in C, or anything that can call C, beside PHP.
 *
 * A module is a shared library that exports one function, regent_module. It says what the module is; its init
 * adds routes; each request of a route is one call of its handler. docs/native.md begins with a whole module.
 *
 * Rules that hold everywhere:
 *  - Text and bytes are (pointer, length). What the host hands out is not terminated by a NUL, must not be written to,
 *    and stays valid until the handler (or init) that asked for it returns. What a module passes in is copied at once.
 *  - Handlers run on many threads at the same time; one request is seen by one thread only, and only until its handler
 *    returns.
 *  - No exception and no longjmp may leave a function of a module: the process would be ended, and the server would
 *    start another.
 *  - A struct begins with its size, filled in by who made it. Whoever reads it reads no further. New members are added at
 *    the end only, so that a module that was compiled with an older header goes on working; REGENT_HAS says whether
 *    the host has a member.
 */
#ifndef REGENT_H
#define REGENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The major version of this interface. A host loads modules of the versions it knows; it is raised only by what cannot
 * be done by adding members at the end. */
#define REGENT_ABI 1u

/* Whether `table`, which begins with its size, has `member`. */
#define REGENT_HAS(table, member) \
    ((table)->size >= offsetof(__typeof__(*(table)), member) + sizeof((table)->member))

/* Makes the one symbol of a module visible. */
#if defined(__GNUC__)
#define REGENT_EXPORT __attribute__((visibility("default")))
#else
#define REGENT_EXPORT
#endif

/* Text or bytes. `data` is NULL where there is nothing, which differs from an empty string. */
typedef struct regent_string {
    const char *data;
    size_t size;
} regent_string;

/* What functions return. Init returns REGENT_OK or REGENT_ERROR, and so do handlers, or what a function has returned. */
typedef enum regent_status {
    REGENT_OK = 0,
    /* A handler that returns it, or anything else that is not named here, is answered with 500, unless its answer has
     * begun: then the answer breaks off. */
    REGENT_ERROR = -1,
    /* The client has gone, or the server has given the request up: nothing that is written is sent. */
    REGENT_GONE = -2,
    /* The call came too late (a status after the first byte was sent) or where it is not allowed (a route after init). */
    REGENT_TOO_LATE = -3,
    /* An argument cannot be used: a header name with a space, a route that exists already. */
    REGENT_INVALID = -4,
    /* There is no such thing. */
    REGENT_MISSING = -5,
    /* The client sent something else than what was asked for. A handler that returns it is answered with 400 and the
     * reason, unless its answer has begun. */
    REGENT_BAD_REQUEST = -6
} regent_status;

/* One module as it was loaded for one service, with a configuration and routes of its own. */
typedef struct regent_instance regent_instance;
/* One request and its answer. */
typedef struct regent_request regent_request;
typedef struct regent_api regent_api;

/* Answers a request. `data` is the route's. */
typedef int (*regent_handler)(const regent_api *api, regent_request *request, void *data);

/* The handler never blocks: no lock that is held for long, no file, no socket, no sleep, less than about 50 microseconds.
 * Where the site's configuration says `inline` too, it runs in the server, on the thread that serves the connections,
 * and neither a crash nor a hang of it is contained. Its answer is kept in memory until it returns, and its request has a
 * body of at most 64 KiB; a larger one goes to the engine. */
#define REGENT_ROUTE_INLINE 1u

typedef struct regent_route {
    size_t size;
    /* "GET", "POST" …; NULL: every method. HEAD is answered by GET's handler, without its body; OPTIONS, 404 and 405 by
     * the host, unless there is a route. */
    const char *method;
    /* "/users/{id}/posts", "/files/{path...}": a parameter is one segment, or with dots the rest of the path. A literal
     * segment goes before a parameter. The path is the one of the request, decoded and as rewritten by the site. */
    const char *path;
    /* REGENT_ROUTE_… */
    uint32_t flags;
    regent_handler handler;
    void *data;
} regent_route;

/* Another module that must be loaded, and initialised, before this one. */
typedef struct regent_dependency {
    const char *name;
    /* Lowest version that will do, compared number by number ("1.10" is above "1.9"). NULL: any. */
    const char *version;
} regent_dependency;

typedef struct regent_module_info {
    size_t size;
    /* REGENT_ABI of the header that it was compiled with. */
    uint32_t abi;
    uint32_t reserved;
    const char *name;
    const char *version;
    const regent_dependency *dependencies;
    size_t dependency_count;
    /* Called once for each service that uses the module, in the order of dependencies. `state`: what cleanup is given.
     * After api->fail(), after a route that cannot be added, or when it returns something else than REGENT_OK, no module
     * is served, and the cleanup of this one is not called. */
    int (*init)(const regent_api *api, regent_instance *instance, void **state);
    /* Called after the last handler has returned, in the reverse order. May be NULL. Not called after a crash. */
    void (*cleanup)(const regent_api *api, regent_instance *instance, void *state);
} regent_module_info;

/* The one function that a module exports. `api` stays valid for the life of the process. The description has to stay
 * valid too. NULL: the module cannot work with this host. */
typedef const regent_module_info *(*regent_module_function)(const regent_api *api);
REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api);
#define REGENT_MODULE_SYMBOL "regent_module"

/* syslog's levels. */
enum regent_level { REGENT_LOG_ERROR = 3, REGENT_LOG_WARNING = 4, REGENT_LOG_INFO = 6, REGENT_LOG_DEBUG = 7 };

enum regent_json_kind {
    REGENT_JSON_NULL = 1,
    REGENT_JSON_BOOLEAN,
    /* Fits into int64_t; `number` has it too. */
    REGENT_JSON_INTEGER,
    REGENT_JSON_NUMBER,
    REGENT_JSON_STRING,
    REGENT_JSON_ARRAY,
    REGENT_JSON_OBJECT
};

/* A value within a JSON document. */
typedef struct regent_json {
    size_t size;
    uint32_t kind;
    /* 0 or 1. */
    uint32_t boolean;
    int64_t integer;
    double number;
    /* A string's text, decoded; of an array or object its JSON. */
    regent_string text;
    /* Elements of an array, members of an object. */
    size_t count;
} regent_json;

/* Requests of an instance since its process started. */
typedef struct regent_statistics {
    size_t size;
    uint64_t requests;
    /* Answers by the first digit of their status: [2] are 200 to 299. [0]: broken off. */
    uint64_t answers[6];
    /* Requests that are running now, the one that asks among them. */
    uint64_t running;
    /* Bytes of the answers' bodies. */
    uint64_t bytes;
} regent_statistics;

/* What the host does for modules. */
struct regent_api {
    size_t size;
    /* The highest REGENT_ABI of modules that the host loads. */
    uint32_t abi;
    uint32_t reserved;

    /* ---- within init ---- */

    /* A `config` line of the site's configuration; data NULL if there is none. */
    regent_string (*configuration)(regent_instance *instance, regent_string name);
    /* All of them: *cursor begins with 0. REGENT_MISSING after the last. */
    int (*next_configuration)(regent_instance *instance, size_t *cursor, regent_string *name, regent_string *value);
    int (*route)(regent_instance *instance, const regent_route *route);
    /* Says why the module cannot be used. */
    int (*fail)(regent_instance *instance, regent_string reason);
    /* Offers `interface` (a struct of functions, valid until cleanup) to modules that depend on this one. */
    int (*offer)(regent_instance *instance, regent_string name, uint32_t version, const void *interface);
    /* What a module that this one depends on, directly or not, offers by this name and version; NULL if none does. */
    const void *(*find)(regent_instance *instance, regent_string name, uint32_t version);

    /* ---- at any time until cleanup has returned, on any thread ---- */

    void (*log)(regent_instance *instance, int level, regent_string message);
    int (*statistics)(regent_instance *instance, regent_statistics *statistics);

    /* ---- a request ---- */

    regent_string (*method)(regent_request *request);
    /* Decoded, without the query, as the routes see it. */
    regent_string (*path)(regent_request *request);
    /* As the client sent it: path and query. */
    regent_string (*target)(regent_request *request);
    /* Behind the question mark, as it was sent; empty if there is none. */
    regent_string (*query)(regent_request *request);
    /* A parameter of the route's path, decoded. */
    regent_string (*parameter)(regent_request *request, regent_string name);
    /* The value, decoded, of the `index`th field of that name in the query. */
    regent_string (*query_value)(regent_request *request, regent_string name, size_t index);
    /* A header field, its name in any case; several of one name are joined by ", ". */
    regent_string (*header)(regent_request *request, regent_string name);
    /* All of them, names in lower case: *cursor begins with 0. REGENT_MISSING after the last. */
    int (*next_header)(regent_request *request, size_t *cursor, regent_string *name, regent_string *value);
    /* What is known of the connection, by CGI's names: REMOTE_ADDR, SERVER_NAME, REQUEST_SCHEME … */
    regent_string (*variable)(regent_request *request, regent_string name);
    /* Bytes of the body; UINT64_MAX if the client did not say. */
    uint64_t (*body_length)(regent_request *request);
    /* Waits for the next part of the body. Bytes that were read, 0 at the end, a negative regent_status. */
    ptrdiff_t (*read_body)(regent_request *request, void *buffer, size_t size);
    /* A value of the body, which is read and parsed at the first call (at most 8 MiB), by its JSON pointer (RFC 6901):
     * "" is the whole, "/user/name" a member. REGENT_MISSING: no such value. REGENT_BAD_REQUEST: the body is not JSON;
     * see `reason`. REGENT_TOO_LATE: read_body has been called. Set value->size before. After it, read_body finds the
     * end. */
    int (*json)(regent_request *request, regent_string pointer, regent_json *value);
    /* Why the last call on this request returned REGENT_BAD_REQUEST, in words for the client. */
    regent_string (*reason)(regent_request *request);
    /* Whether nobody waits for the answer any more. */
    int (*is_gone)(regent_request *request);

    /* ---- its answer ---- */

    /* 200 to 599. 200 unless it is called. */
    int (*set_status)(regent_request *request, unsigned status);
    /* In the place of earlier fields of that name. Fields of the connection (Connection, Transfer-Encoding …) are the
     * server's: REGENT_INVALID, as for names and values that are not HTTP and for more than 24 KiB of them. Content-Length
     * is checked against what is written: more is REGENT_INVALID, less is an error as of a handler that fails. */
    int (*set_header)(regent_request *request, regent_string name, regent_string value);
    /* Beside earlier fields of that name. */
    int (*add_header)(regent_request *request, regent_string name, regent_string value);
    /* Appends to the body. It is sent when 32 KiB have come together, at a flush, and when the handler returns. Waits
     * while the client is slow and the spool is full. Answers to HEAD, and with status 204 or 304, are sent without it. */
    int (*write)(regent_request *request, const void *data, size_t size);
    int (*flush)(regent_request *request);
    /* A field behind the body, for clients that said `TE: trailers`; dropped for others. When part of the body was sent,
     * only fields whose names a header field `Trailer` has announced: else REGENT_TOO_LATE. */
    int (*add_trailer)(regent_request *request, regent_string name, regent_string value);
    /* Answers with an error as a problem document (RFC 9457, application/problem+json) instead of anything that was
     * set before. 400 to 599. Fields can be set behind it, a body cannot be written. */
    int (*refuse)(regent_request *request, unsigned status, regent_string reason);
};

#ifdef __cplusplus
}
#endif

#endif /* REGENT_H */
