/*
 * What scripts change of their thread: what is the thread's own for that, and how it was before.
 */
#ifndef REGENT_UNDO_H
#define REGENT_UNDO_H

#include <locale.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The locale that a thread's script has set (locale.c). */
typedef struct regent_locale {
    locale_t own; /* 0: none, that of the process holds */
    char *names;  /* what the last setlocale(LC_ALL, ...) returned */
    char *wanted; /* what the last setlocale(LC_ALL, "") found in the environment */
} regent_locale;

/* A directory and a character set of a domain of gettext's; none ever goes (text_domain.c). */
typedef struct regent_catalogue regent_catalogue;

/* So many domains may a thread's script bind. */
#define REGENT_BOUND_DOMAINS 32
typedef struct regent_text_domains {
    const regent_catalogue *current; /* NULL: "messages" */
    const regent_catalogue *bound[REGENT_BOUND_DOMAINS];
    size_t n_bound;
} regent_text_domains;

/* What a script has told openlog() (syslog.c). */
typedef struct regent_syslog {
    const char *name; /* PHP's, until closelog(); NULL: none */
    int options;
    int facility;
} regent_syslog;

/*
 * What a script has changed of its thread (undo.c), and how it was before. A worker script has two of these: one for
 * what it does outside of requests, which lasts as long as it runs, and one for the request.
 */
enum {
    REGENT_TOUCHED_SIGNALS = 1,
    REGENT_TOUCHED_LOCALE = 2,
    REGENT_TOUCHED_UMASK = 4,
    REGENT_TOUCHED_PRIORITY = 8,
    REGENT_TOUCHED_PROCESSORS = 16,
    REGENT_TOUCHED_REGEX_OPTIONS = 32,
    REGENT_TOUCHED_PCNTL = 64,
    REGENT_TOUCHED_TEXT_DOMAINS = 128,
};
typedef struct regent_former {
    unsigned touched;
    uint64_t blocked_signals;
    locale_t locale;         /* 0: that of the process */
    zend_string *ctype_name; /* BG(ctype_string) */
    mode_t umask;
    int priority;
    cpu_set_t processors;
    zend_string *regex_options; /* of mb_regex_set_options() */
    HashTable *signal_handlers; /* of pcntl_signal(), by number (pcntl.c) */
    regent_text_domains text_domains;
} regent_former;

#endif
