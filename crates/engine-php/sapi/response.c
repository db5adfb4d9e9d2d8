/*
 * The response: header lines are checked and kept, small writes are collected, and both travel together at a flush,
 * when the buffer is full, or at the end.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* A write of this size or more is passed on without being copied. */
#define REGENT_BODY_BUFFER (32 * 1024)

static void log_output(const char *bytes, size_t size);
static bool send_part(regent_context *context, const char *body, size_t size, bool end);
static bool take_headers(regent_context *context, sapi_headers_struct *headers);
static void client_has_left(regent_context *context);

/* ---- Life ------------------------------------------------------------------------------------------------------ */

bool regent_response_allocate(regent_response *response)
{
    response->body = malloc(REGENT_BODY_BUFFER);
    return response->body != NULL;
}

void regent_response_free(regent_response *response)
{
    free(response->body);
    free(response->head);
    free(response->lines);
}

void regent_response_begin(regent_response *response)
{
    response->body_used = 0;
    response->n_lines = 0;
    response->reason = (regent_str){NULL, 0};
    response->status = 0;
    response->head_pending = false;
    response->head_sent = false;
    response->ended = false;
    response->client_gone = false;
    response->truncated = false;
    response->memory = 0;
}

void regent_response_end(regent_context *context)
{
    regent_response *response = &context->response;
    if (response->ended) {
        return;
    }
    if (!response->head_pending && !response->head_sent) {
        regent_response_fail(context, 500); /* PHP could not even send headers */
    }
    send_part(context, response->body, response->body_used, true);
    response->body_used = 0;
    response->ended = true;
}

void regent_response_fail(regent_context *context, int status)
{
    regent_response *response = &context->response;
    if (response->head_sent || response->ended) {
        return;
    }
    response->body_used = 0;
    response->n_lines = 0;
    response->reason = (regent_str){NULL, 0};
    response->status = status;
    response->head_pending = true;
    SG(headers_sent) = 1;
    SG(request_info).no_headers = 1;
    php_output_set_status(PHP_OUTPUT_DISABLED);
}

/* ---- What PHP calls -------------------------------------------------------------------------------------------- */

size_t regent_ub_write(const char *bytes, size_t size)
{
    regent_context *context = regent_current();
    regent_response *response = context != NULL ? &context->response : NULL;

    if (context == NULL || context->phase == REGENT_OUTSIDE) {
        log_output(bytes, size);
        return size;
    }
    if (response->ended || response->client_gone || regent_request_limit_is_over(context)) {
        return size;
    }
    if (!response->head_pending && !response->head_sent) {
        sapi_send_headers(); /* an informational response went out; this is the real head */
    }
    if (response->body_used + size <= REGENT_BODY_BUFFER) {
        memcpy(response->body + response->body_used, bytes, size);
        response->body_used += size;
        if (regent_host_client_gone(context)) {
            client_has_left(context);
        }
        return size;
    }
    bool sent = response->body_used == 0 || send_part(context, response->body, response->body_used, false);
    response->body_used = 0;
    if (sent && size < REGENT_BODY_BUFFER) {
        memcpy(response->body, bytes, size);
        response->body_used = size;
    } else if (sent) {
        sent = send_part(context, bytes, size, false);
    }
    if (!sent) {
        client_has_left(context);
    }
    return size;
}

void regent_flush(void *server_context)
{
    regent_context *context = regent_current();
    (void)server_context;
    if (context == NULL || context->phase == REGENT_OUTSIDE || context->response.ended ||
        regent_request_limit_is_over(context)) {
        return;
    }
    sapi_send_headers();
    regent_response *response = &context->response;
    if (!response->head_pending && response->body_used == 0) {
        return;
    }
    bool sent = send_part(context, response->body, response->body_used, false);
    response->body_used = 0;
    if (!sent) {
        client_has_left(context);
    }
}

int regent_send_headers(sapi_headers_struct *headers)
{
    regent_context *context = regent_current();
    if (context == NULL || context->phase == REGENT_OUTSIDE || context->response.ended) {
        return SAPI_HEADER_SENT_SUCCESSFULLY;
    }
    int status = headers->http_response_code;
    if (status >= 100 && status < 200) {
        regent_send_informational(context, status);
        headers->http_response_code = 200;
        SG(headers_sent) = 0; /* the real head is still to come */
        return SAPI_HEADER_SENT_SUCCESSFULLY;
    }
    if (!take_headers(context, headers)) {
        return SAPI_HEADER_SEND_FAILED;
    }
    context->response.head_pending = true;
    return SAPI_HEADER_SENT_SUCCESSFULLY;
}

int regent_send_informational(regent_context *context, int status)
{
    regent_response *response = &context->response;
    /* RFC 9110 section 15.2: never to an HTTP/1.0 client. 101 would hand the connection over: it is not ours to give. */
    if (response->ended || response->head_sent || response->head_pending || context->request.proto_num < 1001 ||
        status == 101 || !take_headers(context, &SG(sapi_headers))) {
        return SAPI_HEADER_SENT_SUCCESSFULLY;
    }
    regent_emit part = {.has_head = 1, .status = status, .headers = response->lines, .n_headers = response->n_lines,
                        .informational = 1};
    if (regent_host_emit(context, &part) == REGENT_CLIENT_GONE) {
        client_has_left(context);
    }
    return SAPI_HEADER_SENT_SUCCESSFULLY;
}

/* ---- Sending --------------------------------------------------------------------------------------------------- */

static bool send_part(regent_context *context, const char *body, size_t size, bool end)
{
    regent_response *response = &context->response;
    bool is_overdue = regent_request_limit_is_over(context);
    if (is_overdue && !end) {
        return true; /* it was over a moment ago */
    }
    regent_emit part = {.body = body, .body_len = is_overdue ? 0 : size, .end = end, .truncated = end && response->truncated,
                        .overdue = is_overdue,
                        .memory = response->memory != 0 ? response->memory : zend_memory_usage(false)};
    if (response->head_pending && !is_overdue) {
        part.has_head = 1;
        part.status = response->status;
        part.headers = response->lines;
        part.n_headers = response->n_lines;
        part.reason = response->reason;
        response->head_pending = false;
        response->head_sent = true;
    }
    return regent_host_emit(context, &part) == REGENT_OK;
}

/* A worker outlives its clients: its loop must not be torn down because one of them has left. */
static void client_has_left(regent_context *context)
{
    context->response.client_gone = true;
    context->response.body_used = 0;
    if (regent_is_worker(context)) {
        PG(connection_status) = PHP_CONNECTION_ABORTED;
        php_output_set_status(PHP_OUTPUT_DISABLED);
    } else {
        php_handle_aborted_connection();
    }
}

/* What a worker prints outside of requests, one log line for each of its lines. */
static void log_output(const char *bytes, size_t size)
{
    const char *end = bytes + size;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = newline != NULL ? newline : end;
        if (stop > bytes) {
            regent_host_log(regent_current(), LOG_INFO, (regent_str){bytes, (size_t)(stop - bytes)}, (regent_str){NULL, 0});
        }
        bytes = stop + 1;
    }
}

/* ---- Header lines ---------------------------------------------------------------------------------------------- */

/* RFC 9110 section 5.6.2. */
static const bool is_token_char[256] = {
    ['!'] = true, ['#' ... '\''] = true, ['*'] = true, ['+'] = true, ['-'] = true, ['.'] = true, ['0' ... '9'] = true,
    ['A' ... 'Z'] = true, ['^' ... 'z'] = true, /* with "_" and "`" */ ['|'] = true, ['~'] = true,
};

/* "Name: value" with a name that is a token and a value without control characters; the space may be missing. */
static bool is_header_line(const char *line, size_t length)
{
    size_t i = 0;
    while (i < length && is_token_char[(unsigned char)line[i]]) {
        i++;
    }
    if (i == 0 || i == length || line[i] != ':') {
        return false;
    }
    for (i++; i < length; i++) {
        unsigned char c = (unsigned char)line[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* "Not Here" of "HTTP/1.1 404 Not Here"; the line comes from the script and may be anything. */
static regent_str reason_of(const char *status_line)
{
    regent_str none = {NULL, 0};
    const char *code = status_line != NULL ? strchr(status_line, ' ') : NULL;
    if (code == NULL) {
        return none;
    }
    code += strspn(code, " ");
    const char *reason = code + strspn(code, "0123456789");
    if (reason == code || *reason != ' ') {
        return none;
    }
    reason += strspn(reason, " ");
    for (const char *c = reason; *c != '\0'; c++) {
        if (((unsigned char)*c < ' ' && *c != '\t') || (unsigned char)*c == 0x7f) {
            return none;
        }
    }
    return (regent_str){reason, strlen(reason)};
}

/* What stands behind the colon of a line of this name; ptr NULL: it has another one. */
static regent_str value_of(const sapi_header_struct *header, const char *name)
{
    size_t length = strlen(name);
    if (header->header_len <= length || header->header[length] != ':' || strncasecmp(header->header, name, length) != 0) {
        return (regent_str){NULL, 0};
    }
    const char *value = header->header + length + 1;
    value += strspn(value, " \t");
    return (regent_str){value, strlen(value)};
}

/*
 * "Status: 404 Not Found" is how a script tells a web server its status through CGI, so through php-fpm; a line "HTTP/1.1 ..."
 * goes before it (sapi_cgi_send_headers()). It is no field of the response.
 */
static const sapi_header_struct *status_field(const sapi_headers_struct *headers)
{
    const sapi_header_struct *found = NULL;
    for (zend_llist_element *e = headers->headers.head; e != NULL; e = e->next) {
        const sapi_header_struct *header = (const sapi_header_struct *)e->data;
        regent_str value = value_of(header, "Status");
        int code = value.ptr != NULL ? atoi(value.ptr) : 0;
        found = code >= 200 && code <= 999 ? header : found;
    }
    return headers->http_status_line == NULL ? found : NULL;
}

/* An empty type is how a script asks for none: web servers leave the field out. */
static bool is_sent(const sapi_header_struct *header)
{
    regent_str type = value_of(header, "Content-Type");
    return is_header_line(header->header, header->header_len) && value_of(header, "Status").ptr == NULL &&
           (type.ptr == NULL || type.len > 0);
}

static int checked_status(int status)
{
    if (status == 0) {
        return 200;
    }
    if (status >= 100 && status <= 999) {
        return status;
    }
    char line[80];
    snprintf(line, sizeof(line), "The script set the status %d, which is none; 500 is sent", status);
    regent_host_log_line(LOG_WARNING, line);
    return 500;
}

static bool reserve(regent_response *response, size_t bytes, size_t lines)
{
    if (bytes > response->head_capacity) {
        char *head = realloc(response->head, bytes * 2);
        if (head == NULL) {
            return false;
        }
        response->head = head;
        response->head_capacity = bytes * 2;
    }
    if (lines > response->lines_capacity) {
        regent_str *grown = realloc(response->lines, lines * 2 * sizeof(regent_str));
        if (grown == NULL) {
            return false;
        }
        response->lines = grown;
        response->lines_capacity = lines * 2;
    }
    return true;
}

static regent_str append(char **end, regent_str text)
{
    char *start = *end;
    memcpy(start, text.ptr, text.len);
    *end += text.len;
    return (regent_str){start, text.len};
}

/* Copies the lines, because PHP frees them before the part of the response is sent that they travel with. */
static bool take_headers(regent_context *context, sapi_headers_struct *headers)
{
    regent_response *response = &context->response;
    const sapi_header_struct *status = status_field(headers);
    regent_str reason = reason_of(status != NULL ? strchr(status->header, ':') : headers->http_status_line);
    size_t bytes = reason.len;
    size_t lines = 0;
    for (zend_llist_element *e = headers->headers.head; e != NULL; e = e->next) {
        bytes += ((sapi_header_struct *)e->data)->header_len;
        lines++;
    }
    if (!reserve(response, bytes, lines)) {
        return false;
    }
    char *end = response->head;
    response->n_lines = 0;
    for (zend_llist_element *e = headers->headers.head; e != NULL; e = e->next) {
        const sapi_header_struct *header = (const sapi_header_struct *)e->data;
        if (is_sent(header)) {
            response->lines[response->n_lines++] = append(&end, (regent_str){header->header, header->header_len});
        }
    }
    response->reason = reason.len > 0 ? append(&end, reason) : reason;
    response->status = checked_status(status != NULL ? atoi(value_of(status, "Status").ptr) : headers->http_response_code);
    return true;
}
