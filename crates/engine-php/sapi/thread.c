/*
 * One PHP thread: its set-up, the loop of the classic mode, its end.
 */
#include "engine.h"

static void serve_one(regent_context *context);
static int reason_to_tell(const regent_context *context, int reason);

int regent_php_thread(void *thread, const regent_thread_options *options)
{
    regent_context context = {.thread = thread, .options = options, .phase = REGENT_OUTSIDE,
                              .time_limit.deadline = REGENT_NO_DEADLINE, .request_limit.deadline = REGENT_NO_DEADLINE,
                              .request_limit.slow_at = REGENT_NO_DEADLINE, .request_limit.look_at = REGENT_NO_DEADLINE,
                              .directory.entered = -1};
    int reason = REGENT_THREAD_FAILED;

    if (!regent_response_allocate(&context.response)) {
        return REGENT_THREAD_FAILED;
    }
    regent_process_enter_thread(&context);
    if (regent_tsrm_enter_thread()) {
        ZEND_TSRMLS_CACHE_UPDATE();
        SG(server_context) = &context;
        regent_time_limit_enter_thread(&context);
        reason = options->worker_script != NULL ? regent_serve_worker(&context) : regent_serve_classic(&context);
        regent_time_limit_leave_thread(&context);
        SG(server_context) = NULL;
        regent_process_leave_thread(&context);
        regent_tsrm_leave_thread();
    } else {
        regent_process_leave_thread(&context);
    }
    regent_response_free(&context.response);
    regent_directory_free(&context.directory);
    return reason_to_tell(&context, reason);
}

/* A failure is told as such, or a script that lowers its priority and then fails would be started again without a pause. */
static int reason_to_tell(const regent_context *context, int reason)
{
    bool is_orderly = reason == REGENT_THREAD_STOPPED || reason == REGENT_THREAD_RECYCLE || reason == REGENT_WORKER_ENDED;
    if (context->worn_out && is_orderly) {
        return REGENT_THREAD_WORN_OUT;
    }
    return context->untrusted && reason == REGENT_THREAD_STOPPED ? REGENT_THREAD_RECYCLE : reason;
}

int regent_serve_classic(regent_context *context)
{
    while (regent_host_next_request(context)) {
        serve_one(context);
        regent_request_detach(context);
        regent_host_release(context);
        context->handled++;
        if (context->untrusted || context->worn_out) {
            return REGENT_THREAD_RECYCLE;
        }
    }
    return context->renewing ? REGENT_THREAD_RECYCLE : REGENT_THREAD_STOPPED;
}

static void serve_one(regent_context *context)
{
    regent_request_attach(context);
    if (regent_php_request_startup(context) == FAILURE) {
        regent_response_fail(context, 500);
    } else if (context->body_broken) {
        /* The script must not run on a part of a body. Whoever broke it off knows the better status, if any. */
        regent_response_fail(context, 400);
    } else {
        context->phase = REGENT_RUNNING;
        regent_run_script(context, context->request.script_filename.ptr);
    }
    regent_php_request_shutdown(context);
    if (regent_in_forked_child()) {
        regent_process_exit_child(EG(exit_status));
    }
    regent_response_end(context);
}
