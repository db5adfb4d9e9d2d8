/*
 * The socket that a thread waits for in the kernel, found and shut down by another thread. Libraries call poll() again when
 * a signal has ended it; that a connection is at its end they believe.
 *
 * The thread may go on at any moment, and its descriptors may become others. So the watch works on a duplicate, and only if
 * the thread is still in the same call when that has been made: the kernel gives number, arguments, stack and place.
 */
#include "engine.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of one poll(); a script that waits for more at once is in select() or in a loop of its own. */
#define MOST_SOCKETS 32
/* "7 0x7ffd… …": a number, six arguments, stack and place. */
#define CALL_TEXT 256

/* The host's own, which no script may lose: what stat() says of it. */
static struct stat host_socket;

void regent_waiting_socket_start(int socket)
{
    if (socket < 0 || fstat(socket, &host_socket) != 0) {
        memset(&host_socket, 0, sizeof(host_socket));
    }
}

/* As /proc/self/task/TID/syscall has it (proc(5)); false: the thread runs, or the kernel does not say. */
static bool read_call(pid_t thread, char text[CALL_TEXT])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t length = read(file, text, CALL_TEXT - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 && text[0] >= '0' && text[0] <= '9';
}

bool regent_waits_in_kernel(pid_t thread)
{
    char text[CALL_TEXT];
    return read_call(thread, text);
}

/* Copies what may be gone by now: the thread's stack is its own. */
static size_t read_polled(uint64_t address, uint64_t count, struct pollfd *polled)
{
    size_t bytes = (count < MOST_SOCKETS ? count : MOST_SOCKETS) * sizeof(struct pollfd);
    struct iovec to = {polled, bytes}, from = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes ? bytes / sizeof(struct pollfd) : 0;
}

/* The descriptors that the call waits for. */
static size_t descriptors_of(const char *text, int found[MOST_SOCKETS])
{
    struct pollfd polled[MOST_SOCKETS];
    char *rest;
    long number = strtol(text, &rest, 10);
    uint64_t first = strtoull(rest, &rest, 16), second = strtoull(rest, &rest, 16);

    switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_connect:
        found[0] = (int)first;
        return 1;
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll: {
        size_t count = read_polled(first, second, polled);
        for (size_t i = 0; i < count; i++) {
            found[i] = polled[i].fd;
        }
        return count;
    }
    default:
        return 0;
    }
}

/* A duplicate of a socket that has one other end, and is not the host's; -1 otherwise. */
static int duplicate_connection(int descriptor)
{
    struct stat status;
    int listens = 0;
    socklen_t size = sizeof(listens);
    int duplicate = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) {
        return -1;
    }
    bool is_connection = fstat(duplicate, &status) == 0 && S_ISSOCK(status.st_mode) &&
                         !(status.st_ino == host_socket.st_ino && status.st_dev == host_socket.st_dev) &&
                         getsockopt(duplicate, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 0;
    if (!is_connection) {
        close(duplicate);
        return -1;
    }
    return duplicate;
}

bool regent_waiting_socket_shut_down(pid_t thread)
{
    char before[CALL_TEXT], after[CALL_TEXT];
    int found[MOST_SOCKETS];
    bool any = false;

    size_t count = read_call(thread, before) ? descriptors_of(before, found) : 0;
    for (size_t i = 0; i < count; i++) {
        found[i] = duplicate_connection(found[i]);
    }
    bool still_waits = count > 0 && read_call(thread, after) && strcmp(before, after) == 0;
    for (size_t i = 0; i < count; i++) {
        if (found[i] >= 0) {
            any |= still_waits && shutdown(found[i], SHUT_RDWR) == 0;
            close(found[i]);
        }
    }
    return any;
}
