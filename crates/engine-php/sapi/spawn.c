/*
 * Other programs that scripts run. PHP starts them with popen() (exec(), shell_exec(), mail(), ...) and posix_spawn()
 * (proc_open()), which both would hand on this thread's signal mask, in which all is blocked, and the environment of
 * the process instead of what the script put. These definitions take the place of the C library's for libphp: a
 * program's own symbols come first. What is not called from a PHP thread, or asks for more, passes through unchanged.
 *
 * A script that waits for any of its children gets those of its own thread: the others belong to other requests.
 */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* From SIGTERM to SIGKILL, for a program that has to end, in ns. */
#define TO_END INT64_C(80000000)

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);

/* A stream that popen() gave out, and its process. */
struct opened {
    FILE *stream;
    pid_t pid;
    struct opened *next;
};
static struct opened *all_opened;
static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;

static int spawn(const char *name, pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);
static pid_t spawn_shell(const char *command, int child_end, int wanted_fd);

__attribute__((visibility("default"))) int posix_spawn(pid_t *pid, const char *path,
                                                       const posix_spawn_file_actions_t *actions,
                                                       const posix_spawnattr_t *attributes, char *const argv[],
                                                       char *const envp[])
{
    return spawn("posix_spawn", pid, path, actions, attributes, argv, envp);
}

__attribute__((visibility("default"))) int posix_spawnp(pid_t *pid, const char *file,
                                                        const posix_spawn_file_actions_t *actions,
                                                        const posix_spawnattr_t *attributes, char *const argv[],
                                                        char *const envp[])
{
    return spawn("posix_spawnp", pid, file, actions, attributes, argv, envp);
}

__attribute__((visibility("default"))) FILE *popen(const char *command, const char *type)
{
    bool reads = type[0] == 'r';
    int ends[2]; /* ours is the one that reads in mode "r", the one that writes in mode "w" */
    if (!reads && type[0] != 'w') {
        errno = EINVAL;
        return NULL;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return NULL;
    }
    int own = reads ? ends[0] : ends[1];
    int childs = reads ? ends[1] : ends[0];
    struct opened *opened = malloc(sizeof(*opened));
    FILE *stream = opened != NULL ? fdopen(own, reads ? "r" : "w") : NULL;
    pid_t pid = stream != NULL ? spawn_shell(command, childs, reads ? STDOUT_FILENO : STDIN_FILENO) : -1;
    close(childs);
    if (pid < 0) {
        int error = errno;
        if (stream != NULL) {
            fclose(stream);
        } else {
            close(own);
        }
        free(opened);
        errno = error;
        return NULL;
    }
    pthread_mutex_lock(&opened_lock);
    *opened = (struct opened){stream, pid, all_opened};
    all_opened = opened;
    pthread_mutex_unlock(&opened_lock);
    return stream;
}

__attribute__((visibility("default"))) int pclose(FILE *stream)
{
    pthread_mutex_lock(&opened_lock);
    struct opened **link = &all_opened;
    while (*link != NULL && (*link)->stream != stream) {
        link = &(*link)->next;
    }
    struct opened *opened = *link;
    if (opened != NULL) {
        *link = opened->next;
    }
    pthread_mutex_unlock(&opened_lock);
    if (opened == NULL) {
        errno = EINVAL;
        return -1;
    }
    pid_t pid = opened->pid;
    int status = -1;
    free(opened);
    fclose(stream);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return status;
}

/* ---- Waiting for children ---------------------------------------------------------------------------------------------- */

static int own_children_only(int options)
{
    return regent_guarded() != NULL ? options | __WNOTHREAD : options;
}

/* With what it has started itself: exec() starts a shell, and that the program that is meant. */
static void end_program(pid_t process, int number)
{
    char path[64];
    int child;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)process, (int)process);
    FILE *children = fopen(path, "re");
    while (children != NULL && fscanf(children, "%d", &child) == 1) {
        REGENT_NEXT(kill)(child, number);
    }
    if (children != NULL) {
        fclose(children);
    }
    REGENT_NEXT(kill)(process, number);
}

/*
 * PHP asks again when a signal has ended its wait for a program (pclose() here, proc_close()). If that was because the
 * request's time is over, the program is to end, and if it still runs some time later it must.
 */
static pid_t waited(pid_t process, pid_t result)
{
    regent_context *context = regent_guarded();
    if (result < 0 && errno == EINTR && process > 0 && context != NULL && regent_request_limit_is_over(context)) {
        int64_t now = regent_now();
        if (context->last_terminated != process) {
            end_program(process, SIGTERM);
            context->terminated_at = now;
        } else if (now - context->terminated_at >= TO_END) {
            end_program(process, SIGKILL);
        }
        context->last_terminated = process;
        errno = EINTR;
    }
    return result;
}

REGENT_INTERPOSED pid_t wait4(pid_t process, int *status, int options, struct rusage *usage)
{
    return waited(process, REGENT_NEXT(wait4)(process, status, process > 0 ? options : own_children_only(options), usage));
}

REGENT_INTERPOSED pid_t waitpid(pid_t process, int *status, int options)
{
    return waited(process, REGENT_NEXT(waitpid)(process, status, process > 0 ? options : own_children_only(options)));
}

REGENT_INTERPOSED pid_t wait3(int *status, int options, struct rusage *usage)
{
    return wait4(-1, status, options, usage);
}

REGENT_INTERPOSED pid_t wait(int *status)
{
    return waitpid(-1, status, 0);
}

REGENT_INTERPOSED int waitid(idtype_t kind, id_t id, siginfo_t *info, int options)
{
    bool any = kind == P_ALL || kind == P_PGID;
    return REGENT_NEXT(waitid)(kind, id, info, any ? own_children_only(options) : options);
}

/* ---- Helpers --------------------------------------------------------------------------------------------------------- */

/* No signal is blocked, and SIGPIPE, which we ignore, ends a program that writes to nobody. */
static int init_clean_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, defaults;
    int error = posix_spawnattr_init(attributes);
    if (error != 0) {
        return error;
    }
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &defaults);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(const char *name, pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    spawn_function *original = (spawn_function *)dlsym(RTLD_NEXT, name);
    if (original == NULL) {
        return ENOSYS;
    }
    if (regent_current() == NULL || attributes != NULL) {
        return original(pid, file, actions, attributes, argv, envp);
    }
    posix_spawnattr_t clean;
    int error = init_clean_attributes(&clean);
    if (error != 0) {
        return error;
    }
    char **own = envp == environ ? regent_env_for_children() : NULL;
    error = original(pid, file, actions, &clean, argv, own != NULL ? own : envp);
    free(own);
    posix_spawnattr_destroy(&clean);
    return error;
}

/* As popen(3): the shell, with one end of the pipe as its standard input or output. -1 with errno set on failure. */
static pid_t spawn_shell(const char *command, int child_end, int wanted_fd)
{
    posix_spawn_file_actions_t actions;
    char *argv[] = {"sh", "-c", (char *)command, NULL};
    pid_t pid = -1;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, child_end, wanted_fd);
        if (error == 0) {
            error = posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    if (error != 0) {
        errno = error;
        return -1;
    }
    return pid;
}
