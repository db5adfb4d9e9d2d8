/*
 * What a PHP thread is at, seen from another thread: its PHP functions, the innermost first, as php-fpm's slowlog has them
 * (fpm_php_trace.c), which stops the process for that. Here the thread goes on. One that waits, or is in a function of C,
 * leaves its frames as they are; what one that runs PHP has changed meanwhile is read anew or may be wrong. So everything is
 * copied by the kernel, which refuses what is not there, and bounded.
 */
#include "engine.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FRAMES 64
#define MOST_NAME 256
/* Looks at a thread that goes on meanwhile. */
#define MOST_LOOKS 3

typedef struct output {
    char *text;
    size_t size, used;
} output;

bool regent_peek_into(pid_t process, void *to, const void *from, size_t size)
{
    struct iovec here = {to, size}, there = {(void *)from, size};
    return from != NULL && process_vm_readv(process, &here, 1, &there, 1, 0) == (ssize_t)size;
}

bool regent_peek(void *to, const void *from, size_t size)
{
    return regent_peek_into(getpid(), to, from, size);
}

#define COPY_FIELD(to, structure, type, field) regent_peek((to), (const char *)(structure) + offsetof(type, field), sizeof(*(to)))

static void put(output *out, const char *text, size_t length)
{
    size_t room = out->size - out->used;
    size_t count = length < room ? length : room;
    memcpy(out->text + out->used, text, count);
    out->used += count;
}

static void put_string(output *out, const zend_string *string)
{
    char bytes[MOST_NAME];
    size_t length = 0;
    if (!COPY_FIELD(&length, string, zend_string, len)) {
        put(out, "?", 1);
        return;
    }
    length = length < MOST_NAME ? length : MOST_NAME;
    if (regent_peek(bytes, (const char *)string + offsetof(zend_string, val), length)) {
        put(out, bytes, length);
    }
}

static void put_function(output *out, const zend_function *function)
{
    const zend_string *name = NULL, *class = NULL;
    const zend_class_entry *scope = NULL;
    if (!COPY_FIELD(&name, function, zend_function, common.function_name)) {
        put(out, "?", 1);
        return;
    }
    if (name == NULL) {
        put(out, "{main}", 6);
        return;
    }
    if (COPY_FIELD(&scope, function, zend_function, common.scope) && scope != NULL &&
        COPY_FIELD(&class, scope, zend_class_entry, name)) {
        put_string(out, class);
        put(out, "::", 2);
    }
    put_string(out, name);
    put(out, "()", 2);
}

/* Where a function of PHP is; one of C is nowhere. */
static void put_place(output *out, const zend_execute_data *frame)
{
    const zend_string *file = NULL;
    uint32_t line = 0;
    uint8_t type = 0;
    char number[16];
    if (!COPY_FIELD(&type, frame->func, zend_function, type) || !ZEND_USER_CODE(type)) {
        return;
    }
    if (!COPY_FIELD(&file, frame->func, zend_function, op_array.filename) || file == NULL ||
        !COPY_FIELD(&line, frame->opline, zend_op, lineno)) {
        return;
    }
    put(out, " ", 1);
    put_string(out, file);
    put(out, number, (size_t)snprintf(number, sizeof(number), ":%u", line));
}

static size_t read_frames(const zend_execute_data *innermost, char *text, size_t size)
{
    output out = {text, size, 0};
    zend_execute_data frame;
    int count = 0;
    for (const zend_execute_data *at = innermost; at != NULL && count < MOST_FRAMES; at = frame.prev_execute_data) {
        if (!regent_peek(&frame, at, sizeof(frame))) {
            break;
        }
        if (frame.func == NULL) {
            continue; /* a call that PHP itself makes */
        }
        char number[16];
        put(&out, number, (size_t)snprintf(number, sizeof(number), "%s#%d ", count > 0 ? "\n" : "", count));
        put_function(&out, frame.func);
        put_place(&out, &frame);
        count++;
    }
    return out.used;
}

size_t regent_trace(const regent_context *context, char *text, size_t size)
{
    zend_execute_data *before = NULL, *after = NULL;
    size_t length = 0;
    for (int look = 0; look < MOST_LOOKS; look++) {
        if (!regent_peek(&before, context->current_frame, sizeof(before))) {
            return 0;
        }
        length = read_frames(before, text, size);
        if (regent_peek(&after, context->current_frame, sizeof(after)) && before == after) {
            break;
        }
    }
    return length;
}
