/*
 * What signals.c and signal_calls.c share.
 */
#ifndef REGENT_SIGNALS_H
#define REGENT_SIGNALS_H

#include "engine.h"

#include <string.h>
#include <sys/types.h>

/* Signals are numbered from 1 to 64; a set has one bit for each, as the kernel's. */
#define N_SIGNALS 65
typedef uint64_t signal_set;

/* What a thread's script has done with signals. */
struct regent_signals {
    pid_t thread;
    struct sigaction actions[N_SIGNALS];
    signal_set handled;               /* by a function */
    signal_set blocked;               /* by the script itself */
    _Atomic signal_set wanted;        /* either: the dispatcher passes these on */
    _Atomic unsigned sent[N_SIGNALS]; /* passed on to this thread and not handled yet */
    timer_t alarm;
    bool has_alarm;
    bool stirred; /* something may be pending in the thread */
    struct regent_signals *next;
};

/*
 * Those that are passed on, those that a fault raises in a thread, and those that a PHP thread blocks by itself. The reserved
 * one is ours: a script may set a handler for it, which only the script itself can call.
 */
typedef struct regent_signal_kinds {
    signal_set catchable, faults, reserved, blocked_at_first;
} regent_signal_kinds;
extern regent_signal_kinds regent_signal_kinds_known;
#define KINDS (&regent_signal_kinds_known)

static inline signal_set bit(int number)
{
    return number > 0 && number < N_SIGNALS ? UINT64_C(1) << (number - 1) : 0;
}

static inline signal_set from_sigset(const sigset_t *set)
{
    signal_set bits;
    memcpy(&bits, set, sizeof(bits));
    return bits;
}

static inline sigset_t to_sigset(signal_set bits)
{
    sigset_t set;
    sigemptyset(&set);
    memcpy(&set, &bits, sizeof(bits));
    return set;
}

/* ---- signals.c ------------------------------------------------------------------------------------------------- */

/* Past our own definitions: what the kernel knows of the calling thread, and of the process. */
void regent_signals_set_mask(signal_set blocked);
void regent_signals_handle_sigpipe(void);
/* This thread's record, made when its script first has to do with signals; NULL without memory. */
struct regent_signals *regent_signals_record(regent_context *context);
void regent_signals_send_to(struct regent_signals *signals, int number, const siginfo_t *info);
void regent_signals_call_handler(struct regent_signals *signals, int number, siginfo_t *info, void *machine);
/* Whether a signal that a thread has got is its own; if not, the dispatcher gets it for the thread whose script wants it. */
bool regent_signals_claim(struct regent_signals *signals, int number, siginfo_t *info);
/* In the log, once for each number. */
void regent_signals_report_unwanted(int number);
/* The dispatcher sends nothing in between. */
void regent_signals_lock(void);
void regent_signals_unlock(void);

/* ---- signal_calls.c -------------------------------------------------------------------------------------------- */

/* PHP's own handler of its timer, for forked children. */
extern struct sigaction regent_php_timer_action;

#endif
