/*
 * The SAPI module: how PHP is started in this process and what it calls.
 */
#include "engine.h"

#include <ext/standard/info.h>
#include <string.h>

ZEND_TSRMLS_CACHE_DEFINE()

static char *ini_entries;
static char *software;
static int interrupt_signal, trace_signal;

static int startup(sapi_module_struct *module);
static void log_message(const char *message, int syslog_level);

/*
 * php_sapi_name() and PHP_SAPI are "frankenphp": frameworks and libraries test for that name to find out that a
 * worker is possible and that the server answers HTTP, and opcache knows it.
 */
static sapi_module_struct sapi = {
    .name = "frankenphp",
    .pretty_name = "Regent",
    .startup = startup,
    .shutdown = php_module_shutdown_wrapper,
    .activate = regent_request_activate,
    .ub_write = regent_ub_write,
    .flush = regent_flush,
    .getenv = regent_getenv,
    .sapi_error = php_error,
    .send_headers = regent_send_headers,
    .read_post = regent_read_post,
    .read_cookies = regent_read_cookies,
    .register_server_variables = regent_register_server_variables,
    .log_message = log_message,
    .php_ini_ignore_cwd = 1,
    .ini_defaults = regent_ini_defaults,
};

/* From now on this process has more threads than the calling one. */
static int start_watching(void)
{
    if (regent_process_start(interrupt_signal, trace_signal) == 0 && regent_time_limits_start(interrupt_signal) == 0) {
        return 0;
    }
    regent_host_log_line(LOG_CRIT, "the signals and time limits of the PHP engine could not be set up");
    return -1;
}

int regent_php_has_threads(void)
{
    return REGENT_PHP_HAS_THREADS;
}

int regent_php_enter_process(void)
{
    return REGENT_PHP_HAS_THREADS ? 0 : start_watching();
}

int regent_php_start(const regent_options *options, const regent_callbacks *callbacks)
{
    regent_host_set(callbacks);
    interrupt_signal = options->interrupt_signal;
    trace_signal = options->trace_signal;
    if (REGENT_PHP_HAS_THREADS && start_watching() != 0) {
        return -1;
    }
    regent_waiting_socket_start(options->socket);
    regent_request_limit_start(options->slow_after, options->departed_after);
    regent_tsrm_startup(options->threads);
    (void)regent_tsrm_enter_thread();
    ZEND_TSRMLS_CACHE_UPDATE();
    zend_signal_startup();
    regent_keep_signal_handlers();
    software = strdup(options->software);
    sapi_startup(&sapi); /* it clears ini_entries */
    SG(server_context) = NULL;
    if (options->ini != NULL) {
        ini_entries = strdup(options->ini);
        sapi.ini_entries = ini_entries;
    }
    regent_env_start();
    regent_server_vars_start(options);
    if (sapi.startup(&sapi) == FAILURE) {
        regent_host_log_line(LOG_CRIT, "PHP could not be started; the lines above say why");
        return -1;
    }
    regent_opcache_after_startup();
    return 0;
}

void regent_php_stop(void)
{
    regent_time_limits_stop();
    regent_signals_stop();
    sapi.shutdown(&sapi);
    sapi_shutdown();
    regent_tsrm_shutdown();
    free(ini_entries);
    free(software);
    ini_entries = software = NULL;
}

/* A distribution has newer libraries than the headers that this was compiled with. */
const char *regent_php_version(void)
{
    zval *version = zend_get_constant_str("PHP_VERSION", sizeof("PHP_VERSION") - 1);
    return version && Z_TYPE_P(version) == IS_STRING ? Z_STRVAL_P(version) : PHP_VERSION;
}


static int startup(sapi_module_struct *module)
{
    int result = php_module_startup(module, &regent_module_entry);
    sapi_module.name = module->name;
    return result;
}

static void log_message(const char *message, int syslog_level)
{
    regent_host_log_line(syslog_level, message);
}

/* ---- The PHP extension that holds our functions --------------------------------------------------------------- */

static zend_result (*next_post_startup)(void);

/* Runs when all extensions have registered their functions and no other thread has copied them yet. */
static zend_result post_startup(void)
{
    regent_opcache_override_functions();
    regent_modules_find();
    return next_post_startup != NULL ? next_post_startup() : SUCCESS;
}

static PHP_MINIT_FUNCTION(regent)
{
    (void)type;
    regent_register_constants(module_number);
    regent_env_override_functions();
    regent_server_vars_override_functions();
    regent_script_open_hook_install();
    regent_process_install_interrupt();
    regent_time_limit_watch_ini();
    regent_request_limit_watch_ini();
    regent_pcntl_override_functions();
    regent_undo_override_functions();
    regent_opcache_before_startup();
    next_post_startup = zend_post_startup_cb;
    zend_post_startup_cb = post_startup;
    /* PHP_SAPI is registered already; opcache looks at the name after this (accel_startup()). */
    sapi_module.name = REGENT_NAME_FOR_OPCACHE;
    return SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(regent)
{
    (void)type;
    (void)module_number;
    if (regent_current() != NULL) {
        regent_request_module_shutdown(regent_current());
    }
    return SUCCESS;
}

static PHP_MINFO_FUNCTION(regent)
{
    (void)zend_module;
    php_info_print_table_start();
    php_info_print_table_row(2, "Server", software != NULL ? software : "Regent");
    php_info_print_table_row(2, "Mode", regent_current() != NULL && regent_is_worker(regent_current()) ? "worker" : "classic");
    php_info_print_table_end();
}

/* The extension's name is what extension_loaded() is asked for by those who look for this kind of server. */
zend_module_entry regent_module_entry = {
    STANDARD_MODULE_HEADER,
    "frankenphp",
    regent_functions,
    PHP_MINIT(regent),
    NULL,
    NULL,
    PHP_RSHUTDOWN(regent),
    PHP_MINFO(regent),
    PHP_VERSION,
    STANDARD_MODULE_PROPERTIES,
};
