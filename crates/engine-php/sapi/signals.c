/*
 * Signals. Dispositions belong to the process, so scripts never change them: what a script sets is kept for its thread,
 * and one handler of ours stands for all. Every thread blocks every signal but those that its script handles. What is
 * sent to the process wakes one thread of ours, the dispatcher, which passes it on to the threads whose scripts want
 * it. A signal that no script wants is dropped: it would end all requests. These definitions take the place of the C
 * library's for libphp and what it loads; what is not called from a PHP thread passes through unchanged.
 */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define DISGUISE 0x10000 /* more than any si_code */

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

static struct {
    pthread_t thread;
    pid_t number;
    pthread_mutex_t lock; /* guards the list, and that its members live while they are sent something */
    struct regent_signals *scripts;
    _Atomic bool stopping;
    bool running;
} dispatcher = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Those that are passed on, those that a fault raises in a thread, and those that a PHP thread blocks by itself. */
static signal_set catchable, faults, blocked_at_first;
/* Ours: a script may set a handler, which only the script itself can call. */
static signal_set reserved;
static _Atomic signal_set reported;
/* PHP's own handler of its timer, which counts in forked children only. */
static struct sigaction time_limit_action;

static void install_handlers(void);
static void on_signal(int number, siginfo_t *info, void *machine);
static void *run_dispatcher(void *unused);

/* ---- Sets ---------------------------------------------------------------------------------------------------------- */

static signal_set bit(int number)
{
    return number > 0 && number < N_SIGNALS ? UINT64_C(1) << (number - 1) : 0;
}

static signal_set from_sigset(const sigset_t *set)
{
    signal_set bits;
    memcpy(&bits, set, sizeof(bits));
    return bits;
}

static sigset_t to_sigset(signal_set bits)
{
    sigset_t set;
    sigemptyset(&set);
    memcpy(&set, &bits, sizeof(bits));
    return set;
}

static void set_real_mask(signal_set blocked)
{
    sigset_t set = to_sigset(blocked);
    REGENT_NEXT(pthread_sigmask)(SIG_SETMASK, &set, NULL);
}

static void set_real_action(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | flags};
    action.sa_mask = to_sigset(blocked_at_first);
    REGENT_NEXT(sigaction)(number, &action, NULL);
}

/* ---- Start and end --------------------------------------------------------------------------------------------------- */

int regent_signals_start(int interrupt_signal)
{
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++) {
        faults |= bit(raised[i]);
    }
    for (int number = 1; number < N_SIGNALS; number++) {
        bool is_c_library = number > SIGSYS && number < SIGRTMIN;
        if (!is_c_library && number != SIGKILL && number != SIGSTOP && number != interrupt_signal) {
            catchable |= bit(number);
        }
    }
    catchable &= ~faults;
    reserved = bit(interrupt_signal);
    blocked_at_first = ~faults & ~reserved;
    install_handlers();
    /* The calling thread's, and with it those that it starts from now on. */
    set_real_mask(blocked_at_first | reserved);
    dispatcher.running = pthread_create(&dispatcher.thread, NULL, run_dispatcher, NULL) == 0;
    return dispatcher.running ? 0 : -1;
}

/* SIGPIPE stays ignored unless a script handles it: a write to nobody is an error and nothing else. */
static void install_handlers(void)
{
    for (int number = 1; number < N_SIGNALS; number++) {
        if ((catchable & bit(number)) != 0 && number != SIGPIPE) {
            set_real_action(number, on_signal, number == SIGALRM ? 0 : SA_RESTART);
        }
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    REGENT_NEXT(sigaction)(SIGPIPE, &ignore, NULL);
}

void regent_signals_stop(void)
{
    if (dispatcher.running) {
        dispatcher.stopping = true;
        pthread_kill(dispatcher.thread, SIGURG);
        pthread_join(dispatcher.thread, NULL);
        dispatcher.running = false;
    }
}

void regent_signals_enter_thread(void)
{
    set_real_mask(blocked_at_first);
}

void regent_signals_leave_thread(regent_context *context)
{
    struct regent_signals *signals = context->signals;
    if (signals == NULL || regent_in_forked_child()) {
        return;
    }
    regent_signals_reset(context);
    pthread_mutex_lock(&dispatcher.lock);
    struct regent_signals **link = &dispatcher.scripts;
    while (*link != signals) {
        link = &(*link)->next;
    }
    *link = signals->next;
    pthread_mutex_unlock(&dispatcher.lock);
    context->signals = NULL;
    free(signals);
}

/* ---- The dispatcher ------------------------------------------------------------------------------------------------ */

/* Only the numbers from 1 to 31 have such a default. */
static bool is_harmless(int number)
{
    return number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT;
}

static void report_unwanted(int number)
{
    char line[160];
    if (is_harmless(number) || (atomic_fetch_or(&reported, bit(number)) & bit(number)) != 0) {
        return;
    }
    snprintf(line, sizeof(line), "Signal %d (%s) was sent to the PHP engine and no script handles it: it is dropped, as all later ones",
             number, strsignal(number));
    regent_host_log_line(LOG_WARNING, line);
}

/*
 * Sends on what another thread has got. The kernel lets only the first thread of a process say that a signal came from
 * outside (rt_tgsigqueueinfo(2): si_code), so these codes travel in disguise.
 */
static bool forward(pid_t thread, int number, const siginfo_t *info)
{
    siginfo_t disguised = *info;
    if (info->si_code >= 0 || info->si_code == SI_TKILL) {
        disguised.si_code -= DISGUISE;
    }
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, &disguised) == 0;
}

static void take_disguise_off(siginfo_t *info)
{
    if (info->si_code < -DISGUISE / 2) {
        info->si_code += DISGUISE;
    }
}

static void send_to(struct regent_signals *signals, int number, const siginfo_t *info)
{
    signals->sent[number]++;
    if (!forward(signals->thread, number, info)) {
        signals->sent[number]--;
    }
}

static bool pass_on(int number, const siginfo_t *info)
{
    bool wanted = false;
    pthread_mutex_lock(&dispatcher.lock);
    for (struct regent_signals *signals = dispatcher.scripts; signals != NULL; signals = signals->next) {
        if ((signals->wanted & bit(number)) != 0) {
            send_to(signals, number, info);
            wanted = true;
        }
    }
    pthread_mutex_unlock(&dispatcher.lock);
    return wanted;
}

static void *run_dispatcher(void *unused)
{
    sigset_t all = to_sigset(catchable);
    siginfo_t info;
    (void)unused;
    pthread_setname_np(pthread_self(), "signals");
    __atomic_store_n(&dispatcher.number, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!dispatcher.stopping) {
        int number = sigwaitinfo(&all, &info);
        take_disguise_off(&info);
        if (number > 0 && !dispatcher.stopping && !pass_on(number, &info)) {
            report_unwanted(number);
        }
    }
    return NULL;
}

/* ---- In the thread -------------------------------------------------------------------------------------------------- */

static void call_handler(struct regent_signals *signals, int number, siginfo_t *info, void *machine)
{
    const struct sigaction *action = &signals->actions[number];
    if ((signals->handled & bit(number)) == 0) {
        return;
    }
    if ((action->sa_flags & SA_SIGINFO) != 0) {
        action->sa_sigaction(number, info, machine);
    } else {
        action->sa_handler(number);
    }
}

/* From the dispatcher, the thread's own timer, a write of its own or a child of its own; or meant for the process. */
static bool is_for(struct regent_signals *signals, int number, const siginfo_t *info)
{
    if (signals->sent[number] > 0) {
        signals->sent[number]--;
        return true;
    }
    return number == SIGPIPE || number == SIGCHLD || (number == SIGALRM && info->si_code == SI_TIMER);
}

/* The kernel hands what is sent to the process to any thread that is open for it. */
static void on_signal(int number, siginfo_t *info, void *machine)
{
    regent_context *context = regent_guarded();
    int error = errno;
    take_disguise_off(info);
    if (context != NULL && context->signals != NULL && is_for(context->signals, number, info)) {
        call_handler(context->signals, number, info, machine);
    } else if (number != SIGPIPE && !regent_in_forked_child()) {
        forward(__atomic_load_n(&dispatcher.number, __ATOMIC_ACQUIRE), number, info);
    }
    errno = error;
}

/* This thread's record, made when its script first has to do with signals; NULL without memory. */
static struct regent_signals *record_of(regent_context *context)
{
    if (context->signals == NULL && (context->signals = calloc(1, sizeof(struct regent_signals))) != NULL) {
        struct regent_signals *signals = context->signals;
        signals->thread = (pid_t)syscall(SYS_gettid);
        pthread_mutex_lock(&dispatcher.lock);
        signals->next = dispatcher.scripts;
        dispatcher.scripts = signals;
        pthread_mutex_unlock(&dispatcher.lock);
    }
    return context->signals;
}

/* Takes back what waits for the thread; returns the numbers. */
static signal_set take_pending(signal_set numbers)
{
    const struct timespec at_once = {0, 0};
    sigset_t set = to_sigset(numbers);
    signal_set taken = 0;
    int number;
    while ((number = sigtimedwait(&set, NULL, &at_once)) > 0) {
        taken |= bit(number);
    }
    return taken;
}

static void change(struct regent_signals *signals, signal_set handled, signal_set blocked)
{
    signal_set before = signals->handled & ~signals->blocked & catchable;
    signal_set after = handled & ~blocked & catchable;
    signals->blocked = blocked;
    signals->handled = handled;
    signals->wanted = (handled | blocked) & catchable;
    if (before != after) {
        signals->stirred = true;
        set_real_mask(blocked_at_first & ~after);
    }
}

/* ---- What scripts call ---------------------------------------------------------------------------------------------- */

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/*
 * php_request_startup() installs the handler of PHP's timer, which is off here (time_limit.c). Handlers of scripts block
 * all signals while they run (pcntl_signal()), and this one none.
 */
static bool is_php_timer(int number, const struct sigaction *action)
{
    return number == REGENT_PHP_TIMER_SIGNAL && action != NULL && is_function(action) && from_sigset(&action->sa_mask) == 0;
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
            set_real_action(SIGPIPE, on_signal, SA_RESTART);
        }
        if ((signals->wanted & bit(number)) == 0) {
            take_pending(bit(number)); /* of a time when nobody wanted it */
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
    if (context == NULL || (bit(number) & (catchable | faults | reserved)) == 0) {
        return REGENT_NEXT(sigaction)(number, action, former);
    }
    if (former != NULL) {
        *former = context->signals != NULL ? context->signals->actions[number] : (struct sigaction){.sa_handler = SIG_DFL};
    }
    if (is_php_timer(number, action)) {
        time_limit_action = *action;
        return 0;
    }
    bool stays_default = action != NULL && context->signals == NULL && action->sa_handler == SIG_DFL;
    if (action == NULL || stays_default) {
        return 0;
    }
    if (record_of(context) == NULL) {
        errno = ENOMEM;
        return -1;
    }
    set_action(context, number, action);
    return 0;
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
    if (record_of(context) == NULL) {
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
        send_to(signals, number, &info);
    } else if (signals != NULL && (signals->handled & bit(number)) != 0) {
        set_real_mask(blocked_at_first);
        call_handler(signals, number, &info, NULL);
        set_real_mask(blocked_at_first & ~(signals->handled & ~signals->blocked & catchable));
    } else if (signals == NULL || signals->actions[number].sa_handler != SIG_IGN) {
        report_unwanted(number);
    }
}

/* A fault that no function handles ends the engine, and so do SIGKILL and SIGSTOP: whoever sends these means it. */
REGENT_INTERPOSED int kill(pid_t process, int number)
{
    regent_context *context = regent_guarded();
    bool is_fault = (faults & bit(number)) != 0 && (context == NULL || context->signals == NULL ||
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
    if (record_of(context) == NULL || !make_alarm(context->signals)) {
        return 0;
    }
    note_touch(context);
    context->signals->stirred = true;
    timer_settime(context->signals->alarm, 0, &next, &left);
    bool rounded_up = left.it_value.tv_nsec >= 500000000 || (left.it_value.tv_sec == 0 && left.it_value.tv_nsec > 0);
    return (unsigned)left.it_value.tv_sec + rounded_up;
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
    pthread_mutex_lock(&dispatcher.lock); /* the dispatcher sends nothing meanwhile */
    signal_set left = take_pending(catchable & ~signals->handled);
    pthread_mutex_unlock(&dispatcher.lock);
    memset((void *)signals->sent, 0, sizeof(signals->sent));
    if ((left & bit(SIGALRM)) != 0) {
        report_unwanted(SIGALRM);
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

/* ---- In a forked child -------------------------------------------------------------------------------------------------- */

/* It is a process of its own: now what the script has set is what the kernel knows. */
void regent_signals_in_child(const regent_context *context)
{
    const struct regent_signals *signals = context != NULL ? context->signals : NULL;
    for (int number = 1; number < N_SIGNALS; number++) {
        struct sigaction action = {.sa_handler = number == SIGPIPE ? SIG_IGN : SIG_DFL};
        if (signals != NULL && (signals->actions[number].sa_handler != SIG_DFL)) {
            action = signals->actions[number];
        } else if (number == REGENT_PHP_TIMER_SIGNAL) {
            action = time_limit_action;
        }
        REGENT_NEXT(sigaction)(number, &action, NULL);
    }
    set_real_mask(signals != NULL ? signals->blocked : 0);
}
