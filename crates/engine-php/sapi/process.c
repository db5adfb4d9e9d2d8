/*
 * A PHP thread of this process: the signal that is reserved for it, and the children that it forks.
 */
#include "engine.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

__thread regent_context *regent_thread_context;

static pid_t parent;
static bool forked;

static void before_fork(void);
static void after_fork(void);
static void after_fork_in_child(void);
static void on_interrupt_signal(int number);

int regent_process_start(int number, int trace_signal)
{
    struct sigaction interrupt = {.sa_handler = on_interrupt_signal, .sa_flags = SA_ONSTACK}; /* no SA_RESTART */

    sigemptyset(&interrupt.sa_mask);
    if (sigaction(number, &interrupt, NULL) != 0 || regent_signals_start(number, trace_signal) != 0) {
        return -1;
    }
    return pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0 ? 0 : -1;
}

void regent_process_enter_thread(regent_context *context)
{
    regent_signals_enter_thread();
    regent_thread_state_enter(context);
    regent_thread_context = context;
}

void regent_process_leave_thread(regent_context *context)
{
    regent_signals_leave_thread(context);
    regent_locale_free(context);
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
    if (context != NULL) {
        regent_request_limit_at_opcode(context);
    }
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
    regent_locale_lock();
    regent_syslog_lock();
}

static void after_fork(void)
{
    regent_syslog_unlock();
    regent_locale_unlock();
}

/*
 * The child has one thread, runs no server code, and dies with the thread that forked it (prctl(2)). It may become another program, so it gets
 * the signals and the environment that a program expects.
 */
static void after_fork_in_child(void)
{
    forked = true;
    after_fork();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1); /* it died in between */
    }
    regent_signals_in_child(regent_current());
    if (regent_current() != NULL) {
        char **own = regent_env_for_children();
        if (own != NULL) {
            environ = own;
        }
    }
}
