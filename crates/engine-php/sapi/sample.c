/*
 * What a PHP thread is at, for the profiler: as trace.c, but so cheap that it can be asked hundreds of times a second. The
 * frames of a thread lie side by side in PHP's stack, so a few pages hold most of them, and one call of the kernel reads the
 * heads of all their functions. Names are read only of functions that the profiler has not seen lately.
 *
 * A thread may be a process of its own, which the kernel reads as well: it runs on meanwhile, and need not do anything for it.
 */
#include "engine.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)
#define N_PAGES 8
/* Looks at a thread that goes on meanwhile. */
#define MOST_LOOKS 3
/* Frames that belong to no function, for each that does. */
#define MOST_STEPS (2 * REGENT_MOST_FUNCTIONS)
#define MOST_NAME 200
#define MOST_FILE 300
#define SECOND INT64_C(1000000000)

/* What every kind of function begins with. */
typedef union head {
    uint8_t type;
    char bytes[sizeof(((zend_function *)NULL)->common)];
} head;

/* For one sample at a time: the caller holds the watch's lock. */
static struct {
    pid_t process;
    const zend_execute_data *outermost; /* frame that leads to no other */
    uintptr_t from, to; /* the pages of the thread's stack that were read */
    char pages[N_PAGES * PAGE];
    const zend_function *functions[REGENT_MOST_FUNCTIONS];
    head heads[REGENT_MOST_FUNCTIONS];
    const void *files[REGENT_MOST_FUNCTIONS];
    struct iovec here[REGENT_MOST_FUNCTIONS], there[REGENT_MOST_FUNCTIONS];
} scratch;

static bool peek(void *to, const void *from, size_t size)
{
    return regent_peek_into(scratch.process, to, from, size);
}

/* From the innermost page downwards: the kernel stops at one that is not there. */
static void read_pages(const zend_execute_data *innermost)
{
    struct iovec here[N_PAGES], there[N_PAGES];
    scratch.to = ((uintptr_t)innermost + sizeof(*innermost) + PAGE - 1) & ~(PAGE - 1);
    for (uintptr_t i = 0; i < N_PAGES; i++) {
        here[i] = (struct iovec){scratch.pages + (N_PAGES - 1 - i) * PAGE, PAGE};
        there[i] = (struct iovec){(void *)(scratch.to - (i + 1) * PAGE), PAGE};
    }
    ssize_t count = process_vm_readv(scratch.process, here, N_PAGES, there, N_PAGES, 0);
    scratch.from = scratch.to - (count > 0 ? (uintptr_t)count / PAGE * PAGE : 0);
}

static bool read_frame(const zend_execute_data *at, zend_execute_data *frame)
{
    uintptr_t address = (uintptr_t)at, bottom = scratch.to - N_PAGES * PAGE;
    if (address < scratch.from || address > scratch.to - sizeof(*frame)) {
        return peek(frame, at, sizeof(*frame)); /* of a generator or a fiber, or far below */
    }
    memcpy(frame, scratch.pages + (address - bottom), sizeof(*frame));
    return true;
}

/* The functions that the thread is in, the innermost first. None if they do not come to an end, or lead in a circle. */
static size_t read_functions(const zend_execute_data *innermost)
{
    zend_execute_data frame;
    const zend_execute_data *at = innermost, *seen = NULL;
    size_t count = 0, steps = 0;
    scratch.outermost = NULL;
    read_pages(innermost);
    for (; at != NULL && count < REGENT_MOST_FUNCTIONS && steps < MOST_STEPS; steps++) {
        if (at == seen || !read_frame(at, &frame)) {
            return 0;
        }
        if ((steps & (steps - 1)) == 0) { /* at powers of two, as Brent finds cycles */
            seen = at;
        }
        if (frame.func != NULL) { /* else a call that PHP itself makes */
            scratch.functions[count++] = frame.func;
        }
        scratch.outermost = at;
        at = frame.prev_execute_data;
    }
    return at == NULL || count == REGENT_MOST_FUNCTIONS ? count : 0;
}

/* Copies a part of each function, and returns of how many. */
static size_t read_parts(size_t count, size_t offset, void *parts, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        scratch.here[i] = (struct iovec){(char *)parts + i * size, size};
        scratch.there[i] = (struct iovec){(char *)scratch.functions[i] + offset, size};
    }
    ssize_t got = count > 0 ? process_vm_readv(scratch.process, scratch.here, count, scratch.there, count, 0) : 0;
    return got > 0 ? (size_t)got / size : 0;
}

/* Returns how many there are: all, or none if one of them is no function. */
static size_t describe(size_t count, regent_function *functions)
{
    size_t field = offsetof(zend_function, op_array.filename);
    if (read_parts(count, 0, scratch.heads, sizeof(head)) < count) {
        return 0;
    }
    size_t files = read_parts(count, field, scratch.files, sizeof(scratch.files[0]));
    for (size_t i = 0; i < count; i++) {
        zend_function function;
        memcpy(&function, &scratch.heads[i], sizeof(head));
        functions[i] = (regent_function){
            .name = function.common.function_name, .scope = function.common.scope, .process = scratch.process};
        /* One of C has no such field, and may end where its page does. */
        bool is_there = i < files || peek(&scratch.files[i], (const char *)scratch.functions[i] + field, sizeof(void *));
        functions[i].file = ZEND_USER_CODE(function.type) && is_there ? scratch.files[i] : NULL;
    }
    return count;
}

/* Where the first frame of a thread that runs nothing is. */
static const void *stack_begin(const regent_context *context)
{
    const char *globals = (const char *)context->current_frame - offsetof(zend_executor_globals, current_execute_data);
    struct _zend_vm_stack page = {0};
    const struct _zend_vm_stack *at = NULL;
    if (!peek(&at, globals + offsetof(zend_executor_globals, vm_stack), sizeof(at))) {
        return NULL;
    }
    for (size_t steps = 0; steps < MOST_STEPS && peek(&page, at, sizeof(page)) && page.prev != NULL; steps++) {
        at = page.prev;
    }
    return ZEND_VM_STACK_ELEMENTS(at);
}

/*
 * Whether the functions lead to a script, or to what PHP calls when that is over. Otherwise a frame was made or left while it was
 * read, and what is in it may be anything.
 */
static bool is_whole(const regent_context *context, const regent_sample *sample)
{
    if (sample->n_functions == 0 || sample->n_functions == REGENT_MOST_FUNCTIONS) {
        return sample->n_functions > 0;
    }
    const regent_function *last = &sample->functions[sample->n_functions - 1];
    bool is_script = last->name == NULL && last->file != NULL;
    return is_script || scratch.outermost == stack_begin(context);
}

static void sample_functions(const regent_context *context, regent_sample *sample)
{
    zend_execute_data *before = NULL, *after = NULL;
    for (int look = 0; look < MOST_LOOKS; look++) {
        if (!peek(&before, context->current_frame, sizeof(before)) || before == NULL) {
            break;
        }
        sample->n_functions = describe(read_functions(before), sample->functions);
        if (is_whole(context, sample) && peek(&after, context->current_frame, sizeof(after)) && before == after) {
            return;
        }
    }
    if (!is_whole(context, sample)) {
        sample->n_functions = 0;
    }
}

/* The request may end meanwhile, and its memory be used anew: then the name is that of another, or no name at all. */
static void sample_uri(const regent_context *context, regent_sample *sample)
{
    regent_str uri = context->request.uri;
    size_t length = uri.len < sizeof(sample->uri) ? uri.len : sizeof(sample->uri);
    sample->uri_length = context->phase != REGENT_OUTSIDE && peek(sample->uri, uri.ptr, length) ? length : 0;
}

void regent_sample_take(const regent_context *context, pid_t process, bool with_functions, regent_sample *sample)
{
    struct timespec cpu = {0, 0};
    clock_gettime(context->request_limit.cpu_clock, &cpu);
    sample->cpu = cpu.tv_sec * SECOND + cpu.tv_nsec;
    sample->n_functions = sample->uri_length = 0;
    scratch.process = process;
    if (with_functions) {
        sample_functions(context, sample);
        sample_uri(context, sample);
    }
}

/* ---- Names ------------------------------------------------------------------------------------------------------------- */

static size_t put_string(char *text, size_t room, pid_t process, const zend_string *string)
{
    size_t length = 0;
    if (string == NULL ||
        !regent_peek_into(process, &length, (const char *)string + offsetof(zend_string, len), sizeof(length))) {
        return 0;
    }
    length = length < room ? length : room;
    return regent_peek_into(process, text, (const char *)string + offsetof(zend_string, val), length) ? length : 0;
}

size_t regent_php_function_name(const regent_function *function, char *text, size_t size)
{
    const zend_string *class = NULL;
    pid_t process = (pid_t)function->process;
    size_t used = 0;
    if (function->scope != NULL &&
        regent_peek_into(process, &class, (const char *)function->scope + offsetof(zend_class_entry, name), sizeof(class))) {
        used = put_string(text, size < MOST_NAME ? size : MOST_NAME, process, class);
        if (used > 0 && size - used > 2) {
            memcpy(text + used, "::", 2);
            used += 2;
        }
    }
    size_t room = size - used < MOST_NAME ? size - used : MOST_NAME;
    return used + put_string(text + used, room, process, function->name);
}

size_t regent_php_function_file(const regent_function *function, char *text, size_t size)
{
    return put_string(text, size < MOST_FILE ? size : MOST_FILE, (pid_t)function->process, function->file);
}
