/*
 * What the test host does, read from a file: options and requests, one word and its value a line.
 */
#ifndef REGENT_TEST_SCENARIO_H
#define REGENT_TEST_SCENARIO_H

#include "regent_sapi.h"

#include <stdbool.h>

/* A request and what its client does. */
typedef struct planned {
    regent_request request;
    const char *body;
    size_t body_size;
    int64_t body_breaks_at;   /* -1: never */
    int64_t leaves_after;     /* the client leaves when it has got so many bytes; -1: never */
    int64_t interrupted_after; /* the host gives the request up after so many milliseconds; -1: never */
    long idle_before;         /* milliseconds that the thread waits for this request */
    long repeat;
    bool after_others; /* starts when all earlier requests have ended */
} planned;

typedef struct scenario {
    char ini[4096];
    int threads;
    bool quiet; /* print no responses, only totals */
    const char *worker;
    regent_var worker_env[64];
    size_t n_worker_env;
    uint64_t max_requests;
    int restarts; /* how often a worker script that ended is started again */
    planned *requests;
    size_t n_requests;
} scenario;

/* The names of $_SERVER that the host and the SAPI know by index. */
extern const regent_str well_known_names[];
extern const size_t n_well_known_names;

/* Exits with a message when the file is not well formed. */
void scenario_read(const char *path, scenario *out);

#endif
