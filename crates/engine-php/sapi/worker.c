/*
 * Worker mode: a script boots once and then handles requests in a loop. PHP knows requests only as the whole life of a
 * script, so what php_request_startup() and php_request_shutdown() do for the client's sake is done here for each
 * request, and what they do for the script's sake is not.
 */
#include "engine.h"

#include <Zend/zend_exceptions.h>
#include <ext/spl/spl_exceptions.h>
#include <ext/standard/basic_functions.h>

static void end_script(regent_context *context);
static int reason_of_end(const regent_context *context);
static void leave_outside(regent_context *context);
static void enter_outside(regent_context *context);
static bool take_request(regent_context *context);
static void start_request(regent_context *context);
static void end_request(regent_context *context);
static bool report_exception(void);

int regent_serve_worker(regent_context *context)
{
    SG(request_info).path_translated = (char *)context->options->worker_script;
    SG(sapi_headers).http_response_code = 200;
    if (regent_php_request_startup(context) == SUCCESS) {
        regent_run_script(context, context->options->worker_script);
    }
    end_script(context);
    return reason_of_end(context);
}

/* frankenphp_handle_request(callable $callback): bool */
ZEND_FUNCTION(frankenphp_handle_request)
{
    zend_fcall_info call;
    zend_fcall_info_cache cache;

    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_FUNC(call, cache)
    ZEND_PARSE_PARAMETERS_END();

    regent_context *context = regent_current();
    if (context == NULL || !regent_is_worker(context)) {
        zend_throw_exception(spl_ce_RuntimeException, "frankenphp_handle_request() called while not in worker mode", 0);
        RETURN_THROWS();
    }
    if (context->phase != REGENT_OUTSIDE) {
        zend_throw_exception(spl_ce_RuntimeException, "frankenphp_handle_request() called while a request is handled", 0);
        RETURN_THROWS();
    }
    leave_outside(context);
    if (!take_request(context)) {
        enter_outside(context);
        RETURN_FALSE;
    }
    start_request(context);
    if (context->body_broken) {
        regent_response_fail(context, 400);
    } else if (EG(exception) == NULL) {
        zval result;
        ZVAL_UNDEF(&result);
        call.retval = &result;
        context->phase = REGENT_RUNNING;
        zend_call_function(&call, &cache);
        zval_ptr_dtor(&result);
    }
    if (report_exception()) {
        return; /* the script unwinds and ends; the request ends with it */
    }
    end_request(context);
    if (EG(exception) != NULL) {
        return;
    }
    enter_outside(context);
    RETURN_TRUE;
}

/* ---- The script's life --------------------------------------------------------------------------------------------- */

/* PHP calls them in the order of registration: those of the boot, then those of the request that the script died in. */
static void join_shutdown_functions(regent_context *context)
{
    HashTable *boot = context->worker.boot_shutdown_functions;
    HashTable *request = BG(user_shutdown_function_names);
    context->worker.boot_shutdown_functions = NULL;
    if (boot == NULL) {
        return;
    }
    BG(user_shutdown_function_names) = boot;
    if (request != NULL) {
        void *entry;
        ZEND_HASH_FOREACH_PTR(request, entry)
        {
            zend_hash_next_index_insert_ptr(boot, entry);
        }
        ZEND_HASH_FOREACH_END();
        request->pDestructor = NULL;
        zend_hash_destroy(request);
        FREE_HASHTABLE(request);
    }
}

/* exit(), an uncaught exception or a fatal error may have ended the script in the middle of a request. */
static void end_script(regent_context *context)
{
    bool in_request = context->phase != REGENT_OUTSIDE;
    regent_put_back(&context->worker.aside);
    if (in_request) {
        join_shutdown_functions(context);
    }
    regent_server_vars_forget(context);
    regent_php_request_shutdown(context);
    if (regent_in_forked_child()) {
        regent_process_exit_child(EG(exit_status));
    }
    if (in_request) {
        regent_response_end(context);
        regent_request_detach(context);
        regent_host_release(context);
        context->handled++;
    }
    SG(request_info).path_translated = NULL;
}

static int reason_of_end(const regent_context *context)
{
    if (context->untrusted || context->renewing) {
        return REGENT_THREAD_RECYCLE;
    }
    if (context->worker.stopping) {
        return REGENT_THREAD_STOPPED;
    }
    if (!context->worker.asked) {
        return REGENT_WORKER_BOOT_FAILED;
    }
    return EG(exit_status) == 0 ? REGENT_WORKER_ENDED : REGENT_WORKER_CRASHED;
}

/* ---- What is kept between requests, and what is not ------------------------------------------------------------------- */

/*
 * $_GET, $_POST, $_COOKIE, $_FILES and $_SERVER are made anew. $_REQUEST is, if a script has used it before: PHP makes it
 * when it first compiles a script that names it (auto_globals_jit). $_ENV stays.
 */
static void import_superglobals(void)
{
    zval *files = &PG(http_globals)[TRACK_VARS_FILES];
    zend_auto_global *global;

    zval_ptr_dtor_nogc(files); /* php_auto_globals_create_files() would keep it */
    ZVAL_UNDEF(files);
    ZEND_HASH_FOREACH_PTR(CG(auto_globals), global)
    {
        bool is_env = zend_string_equals_literal(global->name, "_ENV");
        bool is_server = zend_string_equals_literal(global->name, "_SERVER");
        bool waits_for_use = global->jit && global->armed && !is_server;
        if (global->auto_global_callback != NULL && !is_env && !waits_for_use) {
            global->armed = global->auto_global_callback(global->name);
        }
    }
    ZEND_HASH_FOREACH_END();
}

static void forget_last_error(void)
{
    if (PG(last_error_message) != NULL) {
        zend_string_release(PG(last_error_message));
        PG(last_error_message) = NULL;
    }
    if (PG(last_error_file) != NULL) {
        zend_string_release(PG(last_error_file));
        PG(last_error_file) = NULL;
    }
}

/* set_time_limit() holds for the request that called it. */
static void begin_time_limit(regent_context *context)
{
    zend_long limit = context->worker.boot_time_limit;
    if (EG(timeout_seconds) != limit) {
        zend_string *name = ZSTR_INIT_LITERAL("max_execution_time", 0);
        char value[32];
        int length = snprintf(value, sizeof(value), ZEND_LONG_FMT, limit);
        zend_alter_ini_entry_chars(name, value, (size_t)length, PHP_INI_USER, PHP_INI_STAGE_RUNTIME);
        zend_string_release(name);
    }
    zend_set_timeout(limit, 0); /* only notes it: PHP's timer is off */
    regent_time_limit_begin(context, limit);
}

/* As php_request_startup() does it. */
static void start_output_buffering(void)
{
    const char *name = regent_output_handler();
    if (name != NULL && *name != '\0') {
        zval handler;
        ZVAL_STRING(&handler, name);
        php_output_start_user(&handler, 0, PHP_OUTPUT_HANDLER_STDFLAGS);
        zval_ptr_dtor(&handler);
    } else if (PG(output_buffering)) {
        php_output_start_user(NULL, PG(output_buffering) > 1 ? (size_t)PG(output_buffering) : 0, PHP_OUTPUT_HANDLER_STDFLAGS);
    } else if (PG(implicit_flush)) {
        php_output_set_implicit_flush(1);
    }
}

/* sapi_deactivate() frees these two and counts on sapi_activate() coming next; here it may come twice. */
static void deactivate_sapi(void)
{
    sapi_deactivate();
    SG(request_info).content_type_dup = NULL;
    SG(request_info).current_user = NULL;
    regent_forget_header_callback(); /* header_register_callback() came behind the fields, if there is one */
}

/* ---- Outside of requests ---------------------------------------------------------------------------------------------- */

/* What the script prints here goes to the log; headers go nowhere. */
static void enter_outside(regent_context *context)
{
    context->phase = REGENT_OUTSIDE;
    php_output_activate();
    SG(headers_sent) = 1;
    SG(request_info).no_headers = 1;
}

static void leave_outside(regent_context *context)
{
    php_output_end_all();
    if (!context->worker.asked) {
        context->worker.asked = true;
        context->worker.boot_time_limit = EG(timeout_seconds);
        regent_session_end();
        regent_modules_end(context);
    }
    php_output_deactivate();
    regent_body_stream_free();
    deactivate_sapi();
}

static bool take_request(regent_context *context)
{
    regent_time_limit_end(context); /* the script may have set one outside of requests */
    if (context->worker.stopping || context->worn_out) {
        return false;
    }
    if (!regent_host_next_request(context)) {
        context->worker.stopping = true;
        return false;
    }
    return true;
}

/* ---- One request -------------------------------------------------------------------------------------------------------- */

/*
 * A bailout in here or in end_request() ends the script; end_script() then completes the request.
 *
 * What is wrong with a request, such as a body that is too large, is reported as in classic mode: as of no script, and to
 * the client only with display_startup_errors. The worker's script is not to blame.
 */
static void start_request(regent_context *context)
{
    zend_execute_data *frame = EG(current_execute_data);
    EG(current_execute_data) = NULL;
    regent_set_aside(&context->worker.aside);
    PG(during_request_startup) = true;
    context->worker.boot_shutdown_functions = BG(user_shutdown_function_names);
    BG(user_shutdown_function_names) = NULL;
    forget_last_error();
    regent_request_attach(context);
    php_output_activate();
    PG(header_is_being_sent) = 0;
    PG(connection_status) = PHP_CONNECTION_NORMAL;
    sapi_activate();
    begin_time_limit(context);
    if (PG(expose_php) && !SG(headers_sent)) { /* an error about the body has sent them */
        sapi_add_header(SAPI_PHP_VERSION_HEADER, sizeof(SAPI_PHP_VERSION_HEADER) - 1, 1);
    }
    start_output_buffering();
    import_superglobals();
    regent_modules_start(context);
    regent_session_start();
    SG(sapi_started) = 1;
    PG(during_request_startup) = false;
    regent_put_back(&context->worker.aside);
    EG(current_execute_data) = frame;
}

/*
 * As at the end of any script, which has no frame: below one PHP would drop what the exception handler itself throws,
 * because that frame could catch it (zend_call_function()). Without one it is reported, and the script ends.
 */
static void report_uncaught(void)
{
    zend_execute_data *frame = EG(current_execute_data);
    EG(current_execute_data) = NULL;
    if (Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
        zend_user_exception_handler();
    }
    if (EG(exception) != NULL) {
        zend_exception_error(EG(exception), E_ERROR);
    }
    EG(current_execute_data) = frame;
}

/*
 * What is left of an exception that nobody caught: it is reported, and the script ends with it. exit() is such an
 * exception, too, and needs no report.
 */
static bool report_exception(void)
{
    zend_object *exception = EG(exception);
    if (exception == NULL) {
        return false;
    }
    if (zend_is_unwind_exit(exception) || zend_is_graceful_exit(exception)) {
        return true;
    }
    if (!SG(headers_sent)) {
        SG(sapi_headers).http_response_code = 500;
    }
    report_uncaught();
    if (EG(exception) == NULL) {
        zend_throw_unwind_exit();
    }
    return true;
}

/*
 * Those of the request. If one throws, or has a fatal error, the script ends after it has been reported: by then they are
 * gone, or the end of the script would call them again.
 */
static void call_shutdown_functions(regent_context *context)
{
    if (BG(user_shutdown_function_names) != NULL) {
        zend_execute_data *frame = EG(current_execute_data);
        EG(current_execute_data) = NULL;
        php_call_shutdown_functions();
        php_free_shutdown_functions();
        EG(current_execute_data) = frame;
    }
    BG(user_shutdown_function_names) = context->worker.boot_shutdown_functions;
    context->worker.boot_shutdown_functions = NULL;
    if (CG(unclean_shutdown)) {
        zend_bailout(); /* PHP has caught the one that ended them */
    }
}

/* The order is that of php_request_shutdown(). */
static void end_request(regent_context *context)
{
    call_shutdown_functions(context);
    if (EG(exception) == NULL) {
        regent_release_superglobals();
    }
    if (EG(exception) == NULL) {
        php_output_end_all();
    }
    if (report_exception()) {
        return;
    }
    regent_time_limit_end(context);
    regent_session_end();
    regent_modules_end(context);
    php_output_deactivate();
    if (CG(unclean_shutdown)) {
        zend_bailout();
    }
    regent_opcache_poll();
    regent_undo_request(context);
    context->phase = REGENT_ENDING;
    regent_response_end(context);
    regent_body_stream_free();
    deactivate_sapi();
    regent_env_free(&context->env_request);
    zend_set_memory_limit(PG(memory_limit));
    regent_request_detach(context);
    regent_host_release(context);
    context->handled++;
}
