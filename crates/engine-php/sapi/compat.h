/*
 * What differs between the PHP versions that we support (8.2 to 8.6). No other file tests PHP_VERSION_ID.
 */
#ifndef REGENT_COMPAT_H
#define REGENT_COMPAT_H

#include <php.h>
#include <php_main.h>

#if PHP_VERSION_ID < 80200
#error "Regent needs PHP 8.2 or newer"
#endif

/*
 * A PHP that is thread-safe (ZTS) keeps its state for each thread, and requests are answered by threads. Any other has one
 * state, and requests are answered by processes that are forked when PHP has been started. No other file tests ZTS.
 */
#ifdef ZTS
#define REGENT_PHP_HAS_THREADS 1
#define regent_tsrm_enter_thread() (ts_resource(0) != NULL)
#define regent_tsrm_leave_thread() ts_free_thread()
#define regent_tsrm_shutdown() tsrm_shutdown()
#define regent_module_globals(module, type) TSRMG_BULK_STATIC(*(module)->globals_id_ptr, type *)
#else
#define REGENT_PHP_HAS_THREADS 0
#define regent_tsrm_enter_thread() true
#define regent_tsrm_leave_thread() ((void)0)
#define regent_tsrm_shutdown() ((void)0)
#define regent_module_globals(module, type) ((type *)(module)->globals_ptr)
#endif

/* A name that opcache's list of SAPIs (accel_find_sapi()) holds in every release of the version. */
#if PHP_VERSION_ID < 80300
#define REGENT_NAME_FOR_OPCACHE "cli-server"
#else
#define REGENT_NAME_FOR_OPCACHE "frankenphp"
#endif

/* The thread table is sized ahead since 8.3. */
#ifndef ZTS
#define regent_tsrm_startup(threads) ((void)(threads))
#elif PHP_VERSION_ID < 80300
#define regent_tsrm_startup(threads) ((void)(threads), php_tsrm_startup())
#else
#define regent_tsrm_startup(threads) php_tsrm_startup_ex(threads)
#endif

/* opcache calls a hook before it schedules a restart since 8.4; before that it has to be asked. */
#if PHP_VERSION_ID < 80400
#define REGENT_OPCACHE_HAS_RESTART_HOOK 0
#else
#define REGENT_OPCACHE_HAS_RESTART_HOOK 1
#endif

/* The number of a setting that PHP or an extension has registered, now; INI_INT() and INI_BOOL() are gone since 8.6. */
#define regent_ini_long(name) zend_ini_long((name), sizeof(name) - 1, 0)

/* The setting output_handler, or NULL; a zend_string since 8.6. */
#if PHP_VERSION_ID < 80600
#define regent_output_handler() ((const char *)PG(output_handler))
#else
#define regent_output_handler() (PG(output_handler) != NULL ? ZSTR_VAL(PG(output_handler)) : NULL)
#endif

/* What header_register_callback() has set; not a zval since 8.6. */
#if PHP_VERSION_ID < 80600
#define regent_forget_header_callback()                    \
    do {                                                   \
        zval_ptr_dtor(&SG(callback_func));                 \
        ZVAL_UNDEF(&SG(callback_func));                    \
    } while (0)
#else
#define regent_forget_header_callback()                    \
    do {                                                   \
        if (ZEND_FCC_INITIALIZED(SG(send_header_fcc))) {   \
            zend_fcc_dtor(&SG(send_header_fcc));           \
        }                                                  \
    } while (0)
#endif

/* http_get_last_response_headers() is there since 8.4. */
#define REGENT_PHP_KEEPS_RESPONSE_HEADERS (PHP_VERSION_ID >= 80400)

/* The signal of PHP's own timer (zend_set_timeout_ex()). */
#ifdef ZEND_MAX_EXECUTION_TIMERS
#define REGENT_PHP_TIMER_SIGNAL SIGRTMIN
#else
#define REGENT_PHP_TIMER_SIGNAL SIGPROF
#endif

/*
 * --enable-zend-signals, which distributions have: PHP sets its handlers anew for each request, unless it is told not to. The
 * handler of its timer then cannot be told from one that a script sets for that signal.
 */
#ifdef ZEND_SIGNALS
#define regent_keep_signal_handlers() (SIGG(reset) = false)
#define REGENT_ZEND_SIGNALS 1
#else
#define regent_keep_signal_handlers() ((void)0)
#define REGENT_ZEND_SIGNALS 0
#endif

#endif
