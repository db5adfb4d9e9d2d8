/*
 * What PHP's modules forget at the end of a script is forgotten here at the end of a worker's request: results, errors,
 * positions, seeds. What a script sets stays, because frameworks set it once. docs/design/worker-modules.md goes through all
 * modules.
 */
#include "engine.h"

#include <Zend/zend_llist.h>
#include <Zend/zend_smart_str.h>
#include <ext/date/php_date.h>
#include <ext/pcre/php_pcre.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/php_filestat.h>
#include <ext/standard/url_scanner_ex.h>
#include <php_syslog.h>
#include <stdlib.h>
#include <time.h>

#if __has_include(<ext/mbstring/mbstring.h>)
#define HAS_MBSTRING 1
#include <ext/mbstring/mbstring.h>
#else
#define HAS_MBSTRING 0
#endif
#if __has_include(<ext/mysqli/php_mysqli_structs.h>)
#define HAS_MYSQLI 1
#include <ext/mysqli/php_mysqli_structs.h>
#else
#define HAS_MYSQLI 0
#endif

/* ---- Modules whose own functions do it ------------------------------------------------------------------------------- */

/* Which of their functions are called between two requests of a script, where a module has them. */
static struct {
    const char *name;
    bool ends, starts;
    const zend_module_entry *entry; /* NULL: not loaded */
} modules[] = {
    {"filter", true, true, NULL}, {"gd", true, false, NULL},    {"imap", true, true, NULL},
    {"intl", true, false, NULL},  {"json", false, true, NULL},  {"random", false, true, NULL},
    {"soap", false, true, NULL},  {"tidy", true, true, NULL},   {"zlib", true, true, NULL},
};
enum { N_MODULES = sizeof(modules) / sizeof(modules[0]) };

static const zend_module_entry *date, *libxml, *mbstring, *mysqli, *opcache, *pcre;
static zend_function *clear_xml_errors, *search_init;
static zif_handler next_opendir, next_dir, next_search_init;
static ZEND_FUNCTION(regent_opendir);
static ZEND_FUNCTION(regent_dir);
static ZEND_FUNCTION(regent_mb_ereg_search_init);

static const zend_module_entry *find(const char *name)
{
    return zend_hash_str_find_ptr(&module_registry, name, strlen(name));
}

void regent_modules_find(void)
{
    for (size_t i = 0; i < N_MODULES; i++) {
        const zend_module_entry *entry = modules[i].entry = find(modules[i].name);
        modules[i].ends = modules[i].ends && entry != NULL && entry->request_shutdown_func != NULL;
        modules[i].starts = modules[i].starts && entry != NULL && entry->request_startup_func != NULL;
    }
    date = find("date");
    libxml = find("libxml");
    mbstring = find("mbstring");
    mysqli = find("mysqli");
    opcache = find("zend opcache");
    pcre = find("pcre");
    clear_xml_errors = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("libxml_clear_errors"));
    search_init = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("mb_ereg_search_init"));
    next_opendir = regent_override_function("opendir", ZEND_FN(regent_opendir));
    next_dir = regent_override_function("dir", ZEND_FN(regent_dir));
    next_search_init = regent_override_function("mb_ereg_search_init", ZEND_FN(regent_mb_ereg_search_init));
    regent_session_find();
}

/* As zend_deactivate_modules() calls it: without a frame, so that what a session handler throws is reported. */
void regent_module_shut_down(const zend_module_entry *module)
{
    zend_execute_data *frame = EG(current_execute_data);
    EG(current_execute_data) = NULL;
    zend_try
    {
        module->request_shutdown_func(module->type, module->module_number);
    }
    zend_end_try();
    EG(current_execute_data) = frame;
}

/* ---- Modules that would forget too much ------------------------------------------------------------------------------ */

static bool is_in_request(const regent_context *context)
{
    return context != NULL && regent_is_worker(context) && context->phase != REGENT_OUTSIDE;
}

/* readdir() without an argument reads what was opened last, and the extension keeps that open. */
static void remember_directory(zval *opened)
{
    regent_context *context = regent_current();
    zval unused;
    if (!is_in_request(context) || EG(exception) != NULL) {
        return;
    }
    if (Z_TYPE_P(opened) == IS_OBJECT) {
        opened = zend_read_property(Z_OBJCE_P(opened), Z_OBJ_P(opened), ZEND_STRL("handle"), 1, &unused);
    }
    if (Z_TYPE_P(opened) == IS_RESOURCE) {
        if (context->worker.directory != NULL) {
            zend_list_delete(context->worker.directory);
        }
        context->worker.directory = Z_RES_P(opened);
        GC_ADDREF(context->worker.directory);
    }
}

static ZEND_FUNCTION(regent_opendir)
{
    next_opendir(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    remember_directory(return_value);
}

static ZEND_FUNCTION(regent_dir)
{
    next_dir(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    remember_directory(return_value);
}

/* One that the script keeps stays open. */
static void end_directory(regent_context *context)
{
    zend_resource *directory = context->worker.directory;
    context->worker.directory = NULL;
    if (directory == NULL) {
        return;
    }
    if (GC_REFCOUNT(directory) <= 2) {
        zend_list_close(directory);
    }
    zend_list_delete(directory);
}

static void end_url_scanner(url_adapt_state_ex_t *state)
{
    smart_str_free(&state->result);
    smart_str_free(&state->buf);
    smart_str_free(&state->tag);
    smart_str_free(&state->arg);
    smart_str_free(&state->attr_val);
    smart_str_free(&state->form_app);
    smart_str_free(&state->url_app);
    state->active = state->tag_type = state->attr_type = 0;
}

static void end_standard(regent_context *context)
{
    if (BG(strtok_string) != NULL) {
        zend_string_release(BG(strtok_string));
        BG(strtok_string) = NULL;
    }
    BG(strtok_last) = NULL;
    php_clear_stat_cache(0, NULL, 0);
    BG(page_uid) = BG(page_gid) = BG(page_inode) = -1;
    BG(page_mtime) = -1;
    end_url_scanner(&BG(url_adapt_session_ex));
    end_url_scanner(&BG(url_adapt_output_ex));
#if REGENT_PHP_KEEPS_RESPONSE_HEADERS
    zval_ptr_dtor(&BG(last_http_headers));
    ZVAL_UNDEF(&BG(last_http_headers));
#endif
    if (BG(syslog_device) != NULL && !context->worker.boot_opened_log) {
        php_closelog();
        free(BG(syslog_device));
        BG(syslog_device) = NULL;
    }
    end_directory(context);
    while (BG(user_tick_functions) != NULL && zend_llist_count(BG(user_tick_functions)) > context->worker.boot_ticks) {
        zend_llist_remove_tail(BG(user_tick_functions));
    }
}

/* As timelib_error_container_dtor(), which no PHP exports. */
static void free_messages(struct _timelib_error_message *messages, int n)
{
    for (int i = 0; i < n; i++) {
        efree(messages[i].message);
    }
    if (messages != NULL) {
        efree(messages);
    }
}

static void end_date(void)
{
    zend_date_globals *globals = regent_module_globals(date, zend_date_globals);
    timelib_error_container *errors = globals->last_errors;
    if (errors != NULL) {
        free_messages(errors->warning_messages, errors->warning_count);
        free_messages(errors->error_messages, errors->error_count);
        efree(errors);
        globals->last_errors = NULL;
    }
}

/* How zend_libxml_globals begins; its header wants that of the library. */
typedef struct libxml_globals {
    zval stream_context;
    smart_str error_buffer; /* the beginning of a message */
} libxml_globals;

static void end_libxml(void)
{
    smart_str_free(&regent_module_globals(libxml, libxml_globals)->error_buffer);
    if (clear_xml_errors != NULL) {
        zend_call_known_function(clear_xml_errors, NULL, NULL, NULL, 0, NULL, NULL);
    }
}

static ZEND_FUNCTION(regent_mb_ereg_search_init)
{
    if (is_in_request(regent_current())) {
        regent_current()->worker.searches = true;
    }
    next_search_init(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* mb_ereg_search() goes on in the text that it was given last. */
static void end_search(regent_context *context)
{
    if (context->worker.searches) {
        zval nothing, result;
        ZVAL_EMPTY_STRING(&nothing);
        zend_call_known_function(search_init, NULL, NULL, &result, 1, &nothing, NULL);
        zval_ptr_dtor(&result);
        context->worker.searches = false;
    }
}

static void end_mbstring(regent_context *context)
{
    end_search(context);
#if HAS_MBSTRING
    zend_mbstring_globals *globals = regent_module_globals(mbstring, zend_mbstring_globals);
    globals->http_input_identify = globals->http_input_identify_get = globals->http_input_identify_post = NULL;
    globals->http_input_identify_cookie = globals->http_input_identify_string = NULL;
    globals->illegalchars = 0;
#endif
}

static void end_mysqli(void)
{
#if HAS_MYSQLI
    zend_mysqli_globals *globals = regent_module_globals(mysqli, zend_mysqli_globals);
    if (globals->error_msg != NULL) {
        efree(globals->error_msg);
        globals->error_msg = NULL;
    }
    globals->error_no = 0;
#endif
}

void regent_modules_end(regent_context *context)
{
    for (size_t i = 0; i < N_MODULES; i++) {
        if (modules[i].ends) {
            regent_module_shut_down(modules[i].entry);
        }
    }
    end_standard(context);
    end_date();
    regent_module_globals(pcre, zend_pcre_globals)->error_code = PHP_PCRE_NO_ERROR;
    if (libxml != NULL) {
        end_libxml();
    }
    if (mbstring != NULL) {
        end_mbstring(context);
    }
    if (mysqli != NULL) {
        end_mysqli();
    }
}

/* ---- At the start of a request ------------------------------------------------------------------------------------- */

/*
 * opcache looks at its clock when it is to cache a file, or to look whether it has changed; it counts in seconds. Its two
 * functions also free its read lock on the cache, which holds no restart back: that is what regent_opcache_after_startup()
 * does.
 */
static void set_opcache_clock(regent_context *context)
{
    time_t now = (time_t)sapi_get_request_time();
    if (now == context->worker.opcache_clock) {
        return;
    }
    context->worker.opcache_clock = now;
    opcache->post_deactivate_func();
    opcache->request_startup_func(opcache->type, opcache->module_number);
}

void regent_modules_start(regent_context *context)
{
    context->worker.boot_ticks = BG(user_tick_functions) != NULL ? zend_llist_count(BG(user_tick_functions)) : 0;
    context->worker.boot_opened_log = BG(syslog_device) != NULL;
    for (size_t i = 0; i < N_MODULES; i++) {
        if (modules[i].starts) {
            modules[i].entry->request_startup_func(modules[i].entry->type, modules[i].entry->module_number);
        }
    }
    if (opcache != NULL) {
        set_opcache_clock(context);
    }
}
