/*
 * A request as PHP sees it: what it is asked for, its body, its start and its end.
 */
#include "engine.h"

#include <Zend/zend_exceptions.h>
#include <ext/spl/spl_exceptions.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void answer_missing_script(regent_context *context, const char *filename);

/* ---- The request's description --------------------------------------------------------------------------------- */

/* PHP copies what it changes of these (php_default_treat_data(), php_build_argv()); it frees none of them. */
static char *text_or_null(regent_str text)
{
    return text.len > 0 ? (char *)text.ptr : NULL;
}

void regent_request_attach(regent_context *context)
{
    const regent_request *request = &context->request;
    sapi_request_info *info = &SG(request_info);

    info->request_method = request->method.ptr;
    info->request_uri = (char *)request->uri.ptr;
    info->query_string = text_or_null(request->query_string);
    info->content_type = text_or_null(request->content_type);
    info->content_length = request->content_length;
    /* The primary script, as php-fpm has it: getlastmod() and opcache.restrict_api look here. */
    info->path_translated = (char *)request->script_filename.ptr;
    SG(sapi_headers).http_response_code = 200; /* the engine does not reset it */
    context->script_error = 0;
    context->body_broken = false;
    context->server_filtered = false;
    context->interrupted = 0;
    context->last_terminated = 0;
    regent_response_begin(&context->response);
    context->phase = REGENT_STARTING;
    regent_request_limit_begin(context);
}

void regent_request_detach(regent_context *context)
{
    sapi_request_info *info = &SG(request_info);

    regent_request_limit_end(context);
    info->request_method = NULL;
    info->request_uri = NULL;
    info->query_string = NULL;
    info->content_type = NULL;
    info->content_length = 0;
    info->path_translated = NULL;
    info->cookie_data = NULL;
    memset(&context->request, 0, sizeof(context->request));
    context->phase = REGENT_OUTSIDE;
}

/* Called by sapi_activate(), which has just set the protocol to HTTP/1.0. */
int regent_request_activate(void)
{
    regent_context *context = regent_current();
    if (context != NULL) {
        regent_time_limit_during_startup();
    }
    if (context == NULL || context->phase == REGENT_OUTSIDE) {
        return SUCCESS;
    }
    SG(request_info).proto_num = context->request.proto_num;
    php_handle_auth_data(text_or_null(context->request.authorization));
    return SUCCESS;
}

char *regent_read_cookies(void)
{
    return regent_current() != NULL ? text_or_null(regent_current()->request.cookie) : NULL;
}

/* ---- The request's body ---------------------------------------------------------------------------------------- */

/*
 * A script must not take a body that broke off for a complete one. One that reads it as a stream is stopped as if the
 * client had left; where that is not allowed it gets an exception.
 */
static void report_broken_body(regent_context *context)
{
    context->body_broken = true;
    PG(connection_status) = PHP_CONNECTION_ABORTED;
    if (context->phase == REGENT_STARTING || EG(current_execute_data) == NULL) {
        return;
    }
    if (!regent_is_worker(context) && !PG(ignore_user_abort)) {
        php_handle_aborted_connection();
    } else if (EG(exception) == NULL) {
        zend_throw_exception(spl_ce_RuntimeException, "The body of the request broke off", 0);
    }
}

size_t regent_read_post(char *buffer, size_t size)
{
    regent_context *context = regent_current();
    if (context == NULL || context->phase == REGENT_OUTSIDE || context->phase == REGENT_ENDING ||
        context->body_broken || context->request.content_length == 0) {
        return 0; /* what is left of a body when the script has ended is drained by the host */
    }
    int64_t read = regent_host_read_body(context, buffer, size);
    if (read < 0) {
        report_broken_body(context);
        return 0;
    }
    return (size_t)read;
}

/* ---- Start and end --------------------------------------------------------------------------------------------- */

zend_result regent_php_request_startup(regent_context *context)
{
    regent_time_limit_before_startup(context);
    zend_result result = php_request_startup();
    regent_time_limit_during_startup(); /* it may have failed before sapi_activate() */
    return result;
}

/* A bailout out of here (curl_multi with a time limit does it) leaves PHP's state half torn down. */
void regent_php_request_shutdown(regent_context *context)
{
    zend_first_try
    {
        php_request_shutdown(NULL);
    }
    zend_catch
    {
        context->untrusted = true;
    }
    zend_end_try();
    /* A destructor that PHP called behind our part has filled these anew, in memory that is gone now. */
    context->env_request = context->env_boot = NULL;
    regent_undo_script(context);
    if (context->untrusted) {
        /* Nearly always it happens behind php_output_end_all(). Before it, PHP still holds a part of the output. */
        context->response.truncated = context->phase != REGENT_ENDING;
        PG(last_error_message) = NULL; /* it may be freed, and the next error would free it again */
        PG(last_error_file) = NULL;
    }
}

/*
 * Our part of php_request_shutdown(): the script and its shutdown functions are over, the output is complete. That of a
 * script that died of a fatal error too: its client gets what it printed, as from every other server of PHP.
 */
void regent_request_module_shutdown(regent_context *context)
{
    context->response.memory = zend_memory_usage(false);
    if (context->phase != REGENT_OUTSIDE && context->phase != REGENT_FINISHED) {
        context->phase = REGENT_ENDING;
    }
    regent_time_limit_end(context);
    regent_session_shut_down(); /* PHP would call save handlers of the script only when we have forgotten all */
    regent_opcache_poll();
    regent_env_free(&context->env_request);
    regent_env_free(&context->env_boot);
    regent_undo_before_shutdown(context);
}

/* ---- The script's directory --------------------------------------------------------------------------------------- */

/* The thread's own working directory, not the process's. PHP has no symbol for it that every build of it exports. */
static cwd_state *working_directory(void)
{
    char *cache = (char *)realpath_cache_get_buckets();
    return &((virtual_cwd_globals *)(cache - offsetof(virtual_cwd_globals, realpath_cache)))->cwd;
}

static char *replace_text(char **kept, const char *text, size_t length)
{
    char *grown = realloc(*kept, length + 1);
    if (grown != NULL) {
        memcpy(grown, text, length);
        grown[length] = '\0';
        *kept = grown;
    }
    return grown;
}

/*
 * VCWD_CHDIR_FILE() asks the file system each time whether there is such a directory; here that is done once a second
 * for the last one. A failure shows when the file is opened.
 */
static void enter_directory_of(regent_directory *last, const char *filename)
{
    const char *slash = strrchr(filename, '/');
    size_t length = slash != NULL ? (size_t)(slash - filename) + 1 : 0;
    cwd_state *own = working_directory();
    struct timespec now;

    if (!REGENT_PHP_HAS_THREADS) {
        (void)VCWD_CHDIR_FILE(filename); /* it is the process's, and scripts change it behind our back */
        return;
    }
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (last->entered == now.tv_sec && last->length == length && memcmp(last->path, filename, length) == 0) {
        own->cwd = erealloc(own->cwd, last->resolved_length + 1);
        memcpy(own->cwd, last->resolved, last->resolved_length + 1);
        own->cwd_length = last->resolved_length;
        return;
    }
    bool entered = VCWD_CHDIR_FILE(filename) == 0 && replace_text(&last->path, filename, length) != NULL &&
                   replace_text(&last->resolved, own->cwd, own->cwd_length) != NULL;
    last->entered = entered ? now.tv_sec : -1;
    last->length = length;
    last->resolved_length = own->cwd_length;
}

void regent_directory_free(regent_directory *directory)
{
    free(directory->path);
    free(directory->resolved);
}

/* ---- The primary script ---------------------------------------------------------------------------------------- */

void regent_run_script(regent_context *context, const char *filename)
{
    zend_file_handle file;
    zend_stream_init_filename(&file, filename);
    file.primary_script = 1;
    /* We change the directory ourselves: PHP would also go back, which php_request_shutdown() does for nothing. */
    SG(options) |= SAPI_OPTION_NO_CHDIR;
    /* php_execute_script() begins the time anew where reading the request had a limit of its own. */
    regent_time_limit_begin(context, PG(max_input_time) == -1 ? EG(timeout_seconds) : regent_ini_long("max_execution_time"));
    zend_first_try
    {
        CG(skip_shebang) = 1;
        EG(exit_status) = 0;
        enter_directory_of(&context->directory, filename);
        php_execute_script(&file);
    }
    zend_end_try();
    zend_destroy_file_handle(&file);
    if (context->script_error != 0) {
        answer_missing_script(context, filename);
    }
}

static zend_result (*next_stream_open)(zend_file_handle *handle);

/*
 * PHP turns a missing primary script into a fatal error; we answer 404 as php-fpm does (500 if only descriptors lack), and
 * without a stat() call before each request: opcache (or the compiler) opens the file only when it has to, and then passes
 * here.
 */
static zend_result open_script(zend_file_handle *handle)
{
    if (!handle->primary_script || regent_current() == NULL) {
        return next_stream_open(handle);
    }
    bool primary = handle->primary_script;
    errno = 0;
    if (php_stream_open_for_zend_ex(handle, USE_PATH | STREAM_OPEN_FOR_INCLUDE) == SUCCESS) {
        handle->primary_script = primary;
        return SUCCESS;
    }
    regent_current()->script_error = errno != 0 ? errno : ENOENT;
    zend_bailout();
}

void regent_script_open_hook_install(void)
{
    next_stream_open = zend_stream_open_function;
    zend_stream_open_function = open_script;
}

/* What the file cannot help, and what may be over in a moment: the script is not said to be missing. */
static bool lacks_resources(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

static int status_of_missing_script(int error)
{
    if (lacks_resources(error)) {
        return 500;
    }
    return error == EACCES || error == EPERM ? 403 : 404;
}

static const char *text_of_missing_script(int status)
{
    switch (status) {
    case 403:
        return "Access denied.\n";
    case 404:
        return "File not found.\n";
    default:
        return "The script could not be opened.\n";
    }
}

static void answer_missing_script(regent_context *context, const char *filename)
{
    char line[MAXPATHLEN + 128];
    snprintf(line, sizeof(line), "Primary script cannot be opened: %s (%s)", filename, strerror(context->script_error));
    regent_host_log_line(LOG_ERR, line);
    if (context->phase == REGENT_OUTSIDE) {
        return;
    }
    zend_first_try
    {
        int status = status_of_missing_script(context->script_error);
        sapi_header_op(SAPI_HEADER_SET_STATUS, (void *)(intptr_t)status);
        PUTS(text_of_missing_script(status));
    }
    zend_end_try();
}
