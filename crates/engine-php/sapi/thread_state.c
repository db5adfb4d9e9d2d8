/*
 * What the kernel keeps for a thread or for the whole process and scripts can change. What it can keep for a thread
 * becomes the thread's own and is undone with the request; what changes the process is refused as it is to a script of
 * php-fpm, which has no privileges either. These definitions take the place of the C library's for libphp; what is not
 * called from a PHP thread, or in a forked child, passes through unchanged.
 */
#include "engine.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Says once for each kind of call what is refused and why, in the log. */
#define REFUSE(call)                                                                                              \
    ({                                                                                                            \
        static atomic_flag said = ATOMIC_FLAG_INIT;                                                               \
        if (!atomic_flag_test_and_set(&said)) {                                                                   \
            regent_host_log_line(LOG_WARNING, "A script called " call "(): it is refused, since it would change " \
                                              "the process for all requests; start the server with what is wanted"); \
        }                                                                                                         \
        errno = EPERM;                                                                                            \
        -1;                                                                                                       \
    })

/* ---- umask(), and with it the thread's own working directory ----------------------------------------------------------- */

void regent_thread_state_enter(regent_context *context)
{
    context->shares_umask = unshare(CLONE_FS) != 0;
}

static void report_shared_umask(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&said)) {
        regent_host_log_line(LOG_WARNING, "A script called umask(), which holds for all requests of the engine until its own is "
                                          "over: this container forbids unshare(2), which would give each thread its own");
    }
}

REGENT_INTERPOSED mode_t umask(mode_t mask)
{
    mode_t before = REGENT_NEXT(umask)(mask);
    regent_context *context = regent_guarded();
    regent_former *former = context != NULL ? regent_touch(context, REGENT_TOUCHED_UMASK) : NULL;
    if (former != NULL) {
        former->umask = before;
    }
    if (context != NULL && context->shares_umask) {
        report_shared_umask();
    }
    return before;
}

/* ---- Priority and processors, which the kernel keeps for each thread ------------------------------------------------------ */

static void keep_priority(regent_context *context)
{
    regent_former *former = regent_touch(context, REGENT_TOUCHED_PRIORITY);
    if (former != NULL) {
        former->priority = getpriority(PRIO_PROCESS, 0);
    }
}

REGENT_INTERPOSED int nice(int increment)
{
    regent_context *context = regent_guarded();
    if (context != NULL) {
        keep_priority(context);
    }
    return REGENT_NEXT(nice)(increment);
}

static bool is_own_process(pid_t process)
{
    return process == 0 || process == getpid();
}

REGENT_INTERPOSED int setpriority(__priority_which_t which, id_t who, int priority)
{
    regent_context *context = regent_guarded();
    if (context == NULL || (which == PRIO_PROCESS && !is_own_process((pid_t)who))) {
        return REGENT_NEXT(setpriority)(which, who, priority);
    }
    if (which != PRIO_PROCESS) {
        return REFUSE("pcntl_setpriority");
    }
    keep_priority(context);
    return REGENT_NEXT(setpriority)(PRIO_PROCESS, 0, priority);
}

REGENT_INTERPOSED int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *processors)
{
    regent_context *context = regent_guarded();
    if (context == NULL || !is_own_process(process)) {
        return REGENT_NEXT(sched_setaffinity)(process, size, processors);
    }
    regent_former *former = regent_touch(context, REGENT_TOUCHED_PROCESSORS);
    if (former != NULL && sched_getaffinity(0, sizeof(former->processors), &former->processors) != 0) {
        context->worn_out = true; /* more processors than a set has room for */
    }
    return REGENT_NEXT(sched_setaffinity)(0, size, processors);
}

/* A priority may be lowered by anybody and raised again only with a privilege. */
void regent_thread_state_restore(regent_context *context, const regent_former *former)
{
    if ((former->touched & REGENT_TOUCHED_UMASK) != 0) {
        REGENT_NEXT(umask)(former->umask);
    }
    if ((former->touched & REGENT_TOUCHED_PRIORITY) != 0 &&
        REGENT_NEXT(setpriority)(PRIO_PROCESS, 0, former->priority) != 0) {
        context->worn_out = true;
    }
    if ((former->touched & REGENT_TOUCHED_PROCESSORS) != 0 &&
        REGENT_NEXT(sched_setaffinity)(0, sizeof(former->processors), &former->processors) != 0) {
        context->worn_out = true;
    }
}

/* ---- Refused: what belongs to the process ------------------------------------------------------------------------------ */

REGENT_INTERPOSED int setuid(uid_t user)
{
    if (regent_guarded() == NULL) {
        return REGENT_NEXT(setuid)(user);
    }
    return user == getuid() && user == geteuid() ? 0 : REFUSE("posix_setuid");
}

REGENT_INTERPOSED int seteuid(uid_t user)
{
    if (regent_guarded() == NULL) {
        return REGENT_NEXT(seteuid)(user);
    }
    return user == geteuid() ? 0 : REFUSE("posix_seteuid");
}

REGENT_INTERPOSED int setgid(gid_t group)
{
    if (regent_guarded() == NULL) {
        return REGENT_NEXT(setgid)(group);
    }
    return group == getgid() && group == getegid() ? 0 : REFUSE("posix_setgid");
}

REGENT_INTERPOSED int setegid(gid_t group)
{
    if (regent_guarded() == NULL) {
        return REGENT_NEXT(setegid)(group);
    }
    return group == getegid() ? 0 : REFUSE("posix_setegid");
}

REGENT_INTERPOSED int initgroups(const char *user, gid_t group)
{
    return regent_guarded() == NULL ? REGENT_NEXT(initgroups)(user, group) : REFUSE("posix_initgroups");
}

REGENT_INTERPOSED pid_t setsid(void)
{
    return regent_guarded() == NULL ? REGENT_NEXT(setsid)() : REFUSE("posix_setsid");
}

REGENT_INTERPOSED int setpgid(pid_t process, pid_t group)
{
    bool passes = regent_guarded() == NULL || !is_own_process(process);
    return passes ? REGENT_NEXT(setpgid)(process, group) : REFUSE("posix_setpgid");
}

REGENT_INTERPOSED int chroot(const char *path)
{
    return regent_guarded() == NULL ? REGENT_NEXT(chroot)(path) : REFUSE("chroot");
}

#if !REGENT_PHP_HAS_THREADS
/* What becomes another program keeps its place among those that serve, and serves nobody. As a thread it takes the engine along,
 * which is noticed. */
REGENT_INTERPOSED int execve(const char *path, char *const arguments[], char *const environment[])
{
    return regent_guarded() == NULL ? REGENT_NEXT(execve)(path, arguments, environment) : REFUSE("pcntl_exec");
}

REGENT_INTERPOSED int execv(const char *path, char *const arguments[])
{
    return regent_guarded() == NULL ? REGENT_NEXT(execv)(path, arguments) : REFUSE("pcntl_exec");
}
#endif

static int set_limit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    struct rlimit present;
    if (regent_guarded() == NULL) {
        return REGENT_NEXT(setrlimit)(resource, limit);
    }
    if (getrlimit(resource, &present) != 0) {
        return -1;
    }
    bool is_same = present.rlim_cur == limit->rlim_cur && present.rlim_max == limit->rlim_max;
    return is_same ? 0 : REFUSE("posix_setrlimit");
}

REGENT_INTERPOSED int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    return set_limit(resource, limit);
}

/* The same where a file's size has 64 bits anyway. */
REGENT_INTERPOSED int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
    return set_limit(resource, (const struct rlimit *)limit);
}

/* ---- Children whose status nobody wants ------------------------------------------------------------------------------- */

/* Ignoring SIGCHLD would make the kernel drop the status of every request's children (wait(2)); here it is not passed on. */
void regent_thread_state_reap(regent_context *context)
{
    pid_t child;
    while ((child = REGENT_NEXT(waitpid)(-1, NULL, WNOHANG | __WNOTHREAD)) > 0) {
    }
    context->reaps = child == 0 || regent_signals_ignored(context, SIGCHLD); /* some still run, or more may come */
}
