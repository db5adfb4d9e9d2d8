/*
 * Signals, and children that scripts fork.
 */
#include "engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

__thread regent_context *regent_thread_context;

static int interrupt_signal;
static pid_t parent;
static bool forked;

static void before_fork(void);
static void after_fork_in_child(void);
static void on_interrupt_signal(int number);

int regent_process_start(int number)
{
    struct sigaction interrupt = {.sa_handler = on_interrupt_signal, .sa_flags = SA_ONSTACK}; /* no SA_RESTART */
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    interrupt_signal = number;
    sigemptyset(&interrupt.sa_mask);
    sigemptyset(&ignore.sa_mask);
    if (sigaction(number, &interrupt, NULL) != 0 || sigaction(SIGPIPE, &ignore, NULL) != 0) {
        return -1;
    }
    return pthread_atfork(before_fork, NULL, after_fork_in_child) == 0 ? 0 : -1;
}

/* All signals but ours and those that a fault raises in the thread itself belong to the main thread. */
void regent_process_enter_thread(regent_context *context)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    sigset_t blocked;
    sigfillset(&blocked);
    sigdelset(&blocked, interrupt_signal);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sigdelset(&blocked, faults[i]);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    regent_thread_context = context;
}

void regent_process_leave_thread(void)
{
    regent_thread_context = NULL;
}

/* ---- The reserved signal: the host gives a request up, or its time is over ------------------------------------------ */

static void (*next_interrupt)(zend_execute_data *execute_data);

/* Either breaks a system call off and makes PHP look at us between two opcodes. */
static void on_interrupt_signal(int number)
{
    regent_context *context = regent_current();
    (void)number;
    if (context == NULL || regent_time_limit_reached(context)) {
        return;
    }
    if (context->phase != REGENT_OUTSIDE) {
        context->interrupted = 1;
        zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
    }
}

/* The host has marked the request as given up before it sent the signal. One that comes too late, when another request
 * runs, changes nothing. */
static void at_opcode_boundary(zend_execute_data *execute_data)
{
    regent_context *context = regent_current();
    if (context != NULL && context->interrupted) {
        context->interrupted = 0;
        if (regent_host_client_gone(context)) {
            zend_error_noreturn(E_ERROR, "The server ended the request: its time is over or its client has left");
        }
    }
    if (next_interrupt != NULL) {
        next_interrupt(execute_data);
    }
}

void regent_process_install_interrupt(void)
{
    next_interrupt = zend_interrupt_function;
    zend_interrupt_function = at_opcode_boundary;
}

/* ---- Forked children --------------------------------------------------------------------------------------------- */

bool regent_in_forked_child(void)
{
    return forked;
}

_Noreturn void regent_process_exit_child(int status)
{
    _exit(status & 0xff);
}

static void before_fork(void)
{
    parent = getpid();
}

/*
 * The child has one thread, runs no server code, and dies with the thread that forked it (prctl(2)). It may become another program, so it gets
 * the signals and the environment that a program expects.
 */
static void after_fork_in_child(void)
{
    sigset_t none;
    forked = true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1); /* it died in between */
    }
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    if (regent_current() != NULL) {
        char **own = regent_env_for_children();
        if (own != NULL) {
            environ = own;
        }
    }
}
