/*
 * The stream behind php://input, which PHP keeps until a script ends. In a worker it ends with its request. Streams that
 * the script has opened on it may outlive that, in a static variable or in garbage: they would read the next request's
 * body, and they point to this one. Closing those streams would free what objects and libraries (SplFileObject, XMLReader)
 * hold the address of, who are told of nothing. Each stream stays valid and is at its end instead.
 */
#include "engine.h"

static ssize_t read_nothing(php_stream *stream, char *buffer, size_t size)
{
    (void)buffer;
    (void)size;
    stream->eof = 1;
    return 0;
}

static ssize_t write_nothing(php_stream *stream, const char *buffer, size_t size)
{
    (void)stream;
    (void)buffer;
    (void)size;
    return -1;
}

static int flush_nothing(php_stream *stream)
{
    (void)stream;
    return 0;
}

static int seek_nowhere(php_stream *stream, zend_off_t offset, int whence, zend_off_t *position)
{
    (void)offset;
    (void)whence;
    *position = stream->position;
    return -1;
}

/* As php_stream_input_close() does it. */
static int close_input(php_stream *stream, int close_handle)
{
    (void)close_handle;
    efree(stream->abstract);
    stream->abstract = NULL;
    return 0;
}

static const php_stream_ops ended = {
    .label = "Input",
    .write = write_nothing,
    .read = read_nothing,
    .close = close_input,
    .flush = flush_nothing,
    .seek = seek_nowhere,
};

/* What the stream has read ahead is the former client's. */
static void end_stream(php_stream *stream)
{
    stream->ops = &ended;
    stream->readpos = stream->writepos = 0;
    stream->eof = 1;
}

/* All that are open on this body: it is the first member of php_stream_input_t. */
void regent_body_stream_free(void)
{
    php_stream *body = SG(request_info).request_body;
    zend_resource *resource;
    if (body == NULL) {
        return;
    }
    ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource)
    {
        php_stream *stream = resource->type == php_file_le_stream() ? resource->ptr : NULL;
        bool is_input = stream != NULL && stream->ops != &ended && strcmp(stream->ops->label, "Input") == 0;
        if (is_input && *(php_stream **)stream->abstract == body) {
            end_stream(stream);
        }
    }
    ZEND_HASH_FOREACH_END();
    SG(request_info).request_body = NULL;
    php_stream_close(body);
}
