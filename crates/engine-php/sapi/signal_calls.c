/*
 * What scripts do with signals, and its end with their request. These definitions take the place of the C library's for
 * libphp and what it loads (see signals.c for what they do instead); what is not called from a PHP thread passes through
 * unchanged.
 */
#include "signals.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct sigaction regent_php_timer_action;

/* Takes back what waits for the thread; returns the numbers. sigtimedwait(2) also takes what waits for the process. */
static signal_set take_pending(struct regent_signals *signals, signal_set numbers)
{
    const struct timespec at_once = {0, 0};
    sigset_t set = to_sigset(numbers);
    signal_set taken = 0;
    siginfo_t info;
    int number;
    while ((number = sigtimedwait(&set, &info, &at_once)) > 0) {
        taken |= regent_signals_claim(signals, number, &info) ? bit(number) : 0;
    }
    return taken;
}

static void change(struct regent_signals *signals, signal_set handled, signal_set blocked)
{
    signal_set before = signals->handled & ~signals->blocked & KINDS->catchable;
    signal_set after = handled & ~blocked & KINDS->catchable;
    signals->blocked = blocked;
    signals->handled = handled;
    signals->wanted = (handled | blocked) & KINDS->catchable;
    if (before != after) {
        signals->stirred = true;
        regent_signals_set_mask(KINDS->blocked_at_first & ~after);
    }
}

/* ---- What scripts call ---------------------------------------------------------------------------------------------- */

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/*
 * php_request_startup() installs the handler of PHP's timer, which is off here (time_limit.c). Handlers of scripts block
 * all signals while they run (pcntl_signal()), and this one none; with Zend's signals all have the same handler and mask.
 */
static bool is_php_timer(int number, const struct sigaction *action)
{
    return number == REGENT_PHP_TIMER_SIGNAL && action != NULL && is_function(action) &&
           (REGENT_ZEND_SIGNALS || from_sigset(&action->sa_mask) == 0);
}

static void note_touch(regent_context *context)
{
    regent_former *former = regent_touch(context, REGENT_TOUCHED_SIGNALS);
    if (former != NULL) {
        former->blocked_signals = context->signals->blocked;
    }
}

static void set_action(regent_context *context, int number, const struct sigaction *action)
{
    struct regent_signals *signals = context->signals;
    signal_set handled = signals->handled & ~bit(number);
    note_touch(context);
    if (is_function(action)) {
        if (number == SIGPIPE) {
            regent_signals_handle_sigpipe();
        }
        if ((signals->wanted & bit(number)) == 0) {
            take_pending(signals, bit(number)); /* of a time when nobody wanted it */
        }
        handled |= bit(number);
    }
    change(signals, signals->handled & ~bit(number), signals->blocked);
    signals->actions[number] = *action;
    change(signals, handled, signals->blocked);
    if (number == SIGCHLD && action->sa_handler == SIG_IGN) {
        context->reaps = true;
    }
}

REGENT_INTERPOSED int sigaction(int number, const struct sigaction *action, struct sigaction *former)
{
    regent_context *context = regent_guarded();
    if (context == NULL || (bit(number) & (KINDS->catchable | KINDS->faults | KINDS->reserved)) == 0) {
        return REGENT_NEXT(sigaction)(number, action, former);
    }
    if (former != NULL) {
        *former = context->signals != NULL ? context->signals->actions[number] : (struct sigaction){.sa_handler = SIG_DFL};
    }
    if (is_php_timer(number, action)) {
        if (regent_php_timer_action.sa_sigaction != action->sa_sigaction) {
            regent_php_timer_action = *action; /* always the same: a write for each request would slow the other cores down */
        }
        return 0;
    }
    bool stays_default = action != NULL && context->signals == NULL && action->sa_handler == SIG_DFL;
    if (action == NULL || stays_default) {
        return 0;
    }
    if (regent_signals_record(context) == NULL) {
        errno = ENOMEM;
        return -1;
    }
    set_action(context, number, action);
    return 0;
}

REGENT_INTERPOSED __sighandler_t signal(int number, __sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, former;
    if (regent_guarded() == NULL) {
        return REGENT_NEXT(signal)(number, handler);
    }
    return sigaction(number, &action, &former) == 0 ? former.sa_handler : SIG_ERR;
}

/* The mask that scripts see is empty at first; the thread's real one is larger. */
static int change_mask(regent_context *context, int how, const sigset_t *set, sigset_t *former)
{
    signal_set before = context->signals != NULL ? context->signals->blocked : 0;
    signal_set given = set != NULL ? from_sigset(set) : 0;
    signal_set after = how == SIG_BLOCK ? before | given : how == SIG_UNBLOCK ? before & ~given : given;
    if (former != NULL) {
        *former = to_sigset(before);
    }
    if (set == NULL || after == before) {
        return 0;
    }
    if (how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK) {
        return EINVAL;
    }
    if (regent_signals_record(context) == NULL) {
        return ENOMEM;
    }
    note_touch(context);
    change(context->signals, context->signals->handled, after);
    return 0;
}

REGENT_INTERPOSED int pthread_sigmask(int how, const sigset_t *set, sigset_t *former)
{
    regent_context *context = regent_guarded();
    return context != NULL ? change_mask(context, how, set, former) : REGENT_NEXT(pthread_sigmask)(how, set, former);
}

REGENT_INTERPOSED int sigprocmask(int how, const sigset_t *set, sigset_t *former)
{
    int error = pthread_sigmask(how, set, former);
    if (error != 0) {
        errno = error;
    }
    return error == 0 ? 0 : -1;
}

/* A script that sends its own process a signal means itself. */
static void raise_here(regent_context *context, int number)
{
    struct regent_signals *signals = context->signals;
    siginfo_t info = {.si_signo = number, .si_code = SI_USER};
    info.si_pid = getpid();
    info.si_uid = getuid();
    if (signals != NULL && (signals->wanted & signals->blocked & bit(number)) != 0) {
        signals->stirred = true;
        regent_signals_send_to(signals, number, &info);
    } else if (signals != NULL && (signals->handled & bit(number)) != 0) {
        regent_signals_set_mask(KINDS->blocked_at_first);
        regent_signals_call_handler(signals, number, &info, NULL);
        regent_signals_set_mask(KINDS->blocked_at_first & ~(signals->handled & ~signals->blocked & KINDS->catchable));
    } else if (signals == NULL || signals->actions[number].sa_handler != SIG_IGN) {
        regent_signals_report_unwanted(number);
    }
}

/* A fault that no function handles ends the engine, and so do SIGKILL and SIGSTOP: whoever sends these means it. */
REGENT_INTERPOSED int kill(pid_t process, int number)
{
    regent_context *context = regent_guarded();
    bool is_fault = (KINDS->faults & bit(number)) != 0 && (context == NULL || context->signals == NULL ||
                                                    (context->signals->handled & bit(number)) == 0);
    if (context == NULL || process != getpid() || bit(number) == 0 || number == SIGKILL || number == SIGSTOP || is_fault) {
        return REGENT_NEXT(kill)(process, number);
    }
    raise_here(context, number);
    return 0;
}

static bool make_alarm(struct regent_signals *signals)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event.sigev_notify_thread_id = signals->thread;
    signals->has_alarm = signals->has_alarm || timer_create(CLOCK_MONOTONIC, &event, &signals->alarm) == 0;
    return signals->has_alarm;
}

/* The process has one such timer; each thread has its own here. */
REGENT_INTERPOSED unsigned alarm(unsigned seconds)
{
    regent_context *context = regent_guarded();
    struct itimerspec left = {0}, next = {.it_value.tv_sec = seconds};
    if (context == NULL) {
        return REGENT_NEXT(alarm)(seconds);
    }
    if (regent_signals_record(context) == NULL || !make_alarm(context->signals)) {
        return 0;
    }
    note_touch(context);
    context->signals->stirred = true;
    timer_settime(context->signals->alarm, 0, &next, &left);
    bool rounded_up = left.it_value.tv_nsec >= 500000000 || (left.it_value.tv_sec == 0 && left.it_value.tv_nsec > 0);
    return (unsigned)left.it_value.tv_sec + rounded_up;
}

/* A PHP without threads times its scripts with the process's timer of CPU time; here the watch does (time_limit.c). */
REGENT_INTERPOSED int setitimer(__itimer_which_t which, const struct itimerval *next, struct itimerval *former)
{
    bool is_php_timer = which == ITIMER_PROF && regent_guarded() != NULL;
    return is_php_timer ? 0 : REGENT_NEXT(setitimer)(which, next, former);
}

bool regent_signals_ignored(const regent_context *context, int number)
{
    return context->signals != NULL && context->signals->actions[number].sa_handler == SIG_IGN;
}

/* ---- The end of a request --------------------------------------------------------------------------------------------- */

static void end_alarm(struct regent_signals *signals)
{
    if (signals->has_alarm) {
        timer_delete(signals->alarm);
        signals->has_alarm = false;
    }
}

/* What was meant for a request must not reach the next one. */
static void forget_pending(struct regent_signals *signals)
{
    if (!signals->stirred) {
        return;
    }
    signals->stirred = false;
    regent_signals_lock();
    signal_set left = take_pending(signals, KINDS->catchable & ~signals->handled);
    regent_signals_unlock();
    memset((void *)signals->sent, 0, sizeof(signals->sent));
    if ((left & bit(SIGALRM)) != 0) {
        regent_signals_report_unwanted(SIGALRM);
    }
}

void regent_signals_end_request(regent_context *context, uint64_t blocked)
{
    struct regent_signals *signals = context->signals;
    if (signals != NULL) {
        end_alarm(signals);
        change(signals, signals->handled, blocked);
        forget_pending(signals);
    }
}

void regent_signals_reset(regent_context *context)
{
    if (context->signals != NULL) {
        change(context->signals, 0, 0);
        memset(context->signals->actions, 0, sizeof(context->signals->actions));
        regent_signals_end_request(context, 0);
    }
}

