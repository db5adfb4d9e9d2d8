/*
 * Signals. Dispositions belong to the process, so scripts never change them: what a script sets is kept for its thread
 * (signal_calls.c), and one handler of ours stands for all. Every thread blocks every signal but those that its script
 * handles. What is sent to the process wakes one thread of ours, the dispatcher, which passes it on to the threads whose
 * scripts want it. A signal that no script wants is dropped: it would end all requests.
 */
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DISGUISE 0x10000 /* more than any si_code */

static struct {
    pthread_t thread;
    pid_t number;
    pthread_mutex_t lock; /* guards the list, and that its members live while they are sent something */
    struct regent_signals *scripts;
    _Atomic bool stopping;
    bool running;
    int trace_signal; /* 0: none */
} dispatcher = {.lock = PTHREAD_MUTEX_INITIALIZER};

regent_signal_kinds regent_signal_kinds_known;
static _Atomic signal_set reported;

static void install_handlers(void);
static void on_signal(int number, siginfo_t *info, void *machine);
static void *run_dispatcher(void *unused);

/* ---- What the kernel knows ------------------------------------------------------------------------------------------ */

void regent_signals_set_mask(signal_set blocked)
{
    sigset_t set = to_sigset(blocked);
    REGENT_NEXT(pthread_sigmask)(SIG_SETMASK, &set, NULL);
}

static void set_real_action(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | flags};
    action.sa_mask = to_sigset(KINDS->blocked_at_first);
    REGENT_NEXT(sigaction)(number, &action, NULL);
}

void regent_signals_handle_sigpipe(void)
{
    set_real_action(SIGPIPE, on_signal, SA_RESTART);
}

/* ---- Start and end --------------------------------------------------------------------------------------------------- */

int regent_signals_start(int interrupt_signal, int trace_signal)
{
    dispatcher.trace_signal = trace_signal;
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++) {
        KINDS->faults |= bit(raised[i]);
    }
    for (int number = 1; number < N_SIGNALS; number++) {
        bool is_c_library = number > SIGSYS && number < SIGRTMIN;
        if (!is_c_library && number != SIGKILL && number != SIGSTOP && number != interrupt_signal) {
            KINDS->catchable |= bit(number);
        }
    }
    KINDS->catchable &= ~KINDS->faults;
    KINDS->reserved = bit(interrupt_signal);
    KINDS->blocked_at_first = ~KINDS->faults & ~KINDS->reserved;
    install_handlers();
    /* The calling thread's, and with it those that it starts from now on. */
    regent_signals_set_mask(KINDS->blocked_at_first | KINDS->reserved);
    dispatcher.running = pthread_create(&dispatcher.thread, NULL, run_dispatcher, NULL) == 0;
    return dispatcher.running ? 0 : -1;
}

/* SIGPIPE stays ignored unless a script handles it: a write to nobody is an error and nothing else. */
static void install_handlers(void)
{
    for (int number = 1; number < N_SIGNALS; number++) {
        if ((KINDS->catchable & bit(number)) != 0 && number != SIGPIPE) {
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

/* ---- Threads --------------------------------------------------------------------------------------------------------- */

void regent_signals_enter_thread(void)
{
    regent_signals_set_mask(KINDS->blocked_at_first);
}

struct regent_signals *regent_signals_record(regent_context *context)
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

void regent_signals_report_unwanted(int number)
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

/*
 * The kernel keeps one pending signal of a standard number and drops the next (signal(7)), so one is all that the thread will
 * get: counting the dropped one would have the thread keep for itself what is meant for the process. Real-time signals queue.
 */
void regent_signals_send_to(struct regent_signals *signals, int number, const siginfo_t *info)
{
    if (number < SIGRTMIN) {
        signals->sent[number] = 1;
    } else {
        signals->sent[number]++;
    }
    if (!forward(signals->thread, number, info) && number >= SIGRTMIN) {
        signals->sent[number]--;
    }
}

static bool pass_on(int number, const siginfo_t *info)
{
    bool wanted = false;
    pthread_mutex_lock(&dispatcher.lock);
    for (struct regent_signals *signals = dispatcher.scripts; signals != NULL; signals = signals->next) {
        if ((signals->wanted & bit(number)) != 0) {
            regent_signals_send_to(signals, number, info);
            wanted = true;
        }
    }
    pthread_mutex_unlock(&dispatcher.lock);
    return wanted;
}

static void *run_dispatcher(void *unused)
{
    sigset_t all = to_sigset(KINDS->catchable);
    siginfo_t info;
    (void)unused;
    pthread_setname_np(pthread_self(), "signals");
    __atomic_store_n(&dispatcher.number, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!dispatcher.stopping) {
        int number = sigwaitinfo(&all, &info);
        take_disguise_off(&info);
        if (number > 0 && number == dispatcher.trace_signal) {
            regent_watch_tell_traces();
        } else if (number > 0 && !dispatcher.stopping && !pass_on(number, &info)) {
            regent_signals_report_unwanted(number);
        }
    }
    return NULL;
}

/* ---- In the thread -------------------------------------------------------------------------------------------------- */

void regent_signals_call_handler(struct regent_signals *signals, int number, siginfo_t *info, void *machine)
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

/*
 * From the dispatcher, the thread's own timer or a write of its own; or meant for the process. SIGCHLD always is: while one
 * is pending the kernel drops that of another thread's child.
 */
static bool is_for(struct regent_signals *signals, int number, const siginfo_t *info)
{
    if (signals->sent[number] > 0) {
        signals->sent[number]--;
        return true;
    }
    return number == SIGPIPE || (number == SIGALRM && info->si_code == SI_TIMER);
}

/* The kernel hands what is sent to the process to any thread that is open for it or asks. */
static void hand_to_dispatcher(int number, const siginfo_t *info)
{
    forward(__atomic_load_n(&dispatcher.number, __ATOMIC_ACQUIRE), number, info);
}

bool regent_signals_claim(struct regent_signals *signals, int number, siginfo_t *info)
{
    take_disguise_off(info);
    bool is_own = is_for(signals, number, info);
    if (!is_own) {
        hand_to_dispatcher(number, info);
    }
    return is_own;
}

static void on_signal(int number, siginfo_t *info, void *machine)
{
    regent_context *context = regent_guarded();
    int error = errno;
    take_disguise_off(info);
    if (context != NULL && context->signals != NULL && is_for(context->signals, number, info)) {
        regent_signals_call_handler(context->signals, number, info, machine);
    } else if (number != SIGPIPE && !regent_in_forked_child()) {
        hand_to_dispatcher(number, info);
    }
    errno = error;
}

void regent_signals_lock(void)
{
    pthread_mutex_lock(&dispatcher.lock);
}

void regent_signals_unlock(void)
{
    pthread_mutex_unlock(&dispatcher.lock);
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
            action = regent_php_timer_action;
        }
        REGENT_NEXT(sigaction)(number, &action, NULL);
    }
    regent_signals_set_mask(signals != NULL ? signals->blocked : 0);
}
