/*
 * The callbacks of the host, and the rule that a forked child never calls one: the rings that they write to belong
 * to the parent.
 */
#include "engine.h"

#include <string.h>

static regent_callbacks host;

void regent_host_set(const regent_callbacks *callbacks)
{
    host = *callbacks;
}

int regent_host_next_request(regent_context *context)
{
    if (regent_in_forked_child()) {
        return 0;
    }
    int answer = host.next_request(context->thread, &context->request);
    context->renewing = answer < 0;
    return answer > 0;
}

int64_t regent_host_read_body(regent_context *context, char *buffer, size_t size)
{
    return regent_in_forked_child() ? 0 : host.read_body(context->thread, buffer, size);
}

int regent_host_emit(regent_context *context, const regent_emit *part)
{
    return regent_in_forked_child() ? REGENT_OK : host.emit(context->thread, part);
}

int regent_host_client_gone(regent_context *context)
{
    return regent_in_forked_child() ? 0 : host.client_gone(context->thread);
}

void regent_host_release(regent_context *context)
{
    if (!regent_in_forked_child()) {
        host.release(context->thread);
    }
}

void regent_host_log(regent_context *context, int level, regent_str message, regent_str json)
{
    if (!regent_in_forked_child()) {
        host.log(context != NULL ? context->thread : NULL, level, message, json);
    }
}

void regent_host_log_line(int level, const char *message)
{
    regent_str text = {message, strlen(message)};
    regent_str none = {NULL, 0};
    regent_host_log(regent_current(), level, text, none);
}

static regent_str script_of(const regent_context *context)
{
    const char *worker = context->options->worker_script;
    return worker != NULL ? (regent_str){worker, strlen(worker)} : context->request.script_filename;
}

void regent_host_slow(const regent_context *context, regent_str trace, uint64_t omitted)
{
    const regent_request *request = &context->request;
    regent_slow slow = {
        .thread = context->options->number,
        .script = script_of(context),
        .uri = request->uri,
        .ran = regent_now() - request->started,
        .trace = trace,
        .omitted = omitted,
    };
    host.slow(&slow);
}

void regent_host_overdue(const regent_context *context, int end)
{
    const regent_request *request = &context->request;
    regent_overdue overdue = {
        .thread = context->options->number,
        .script = script_of(context),
        .trace = {context->request_limit.trace, context->request_limit.trace_length},
        .uri = request->uri,
        .limit = regent_request_limit_of(context),
        .ran = regent_now() - request->started,
        .departed = context->request_limit.is_departed,
        .end = end,
    };
    host.overdue(&overdue);
}

void regent_host_straggles(const regent_context *context)
{
    host.straggles(context->options->number, context->request.started);
}

void regent_host_traced(const regent_context *context, regent_str trace)
{
    host.traced(context->options->number, trace);
}

void regent_host_restart_wanted(const char *reason, const regent_context *asked_by)
{
    if (!regent_in_forked_child()) {
        regent_str text = {reason, strlen(reason)};
        host.restart_wanted(text, asked_by != NULL ? script_of(asked_by) : (regent_str){0});
    }
}

int regent_host_publish(regent_context *context, const regent_publication *publication, char *id)
{
    if (regent_in_forked_child()) {
        return REGENT_PUBLISH_NO_HUB;
    }
    return host.publish(context != NULL ? context->thread : NULL, publication, id);
}

int regent_host_purge(regent_context *context, const regent_purge *purge, uint64_t *purged)
{
    if (regent_in_forked_child()) {
        return REGENT_PURGE_NO_CACHE;
    }
    return host.purge(context != NULL ? context->thread : NULL, purge, purged);
}
