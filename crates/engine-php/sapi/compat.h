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
#ifndef ZTS
#error "Regent needs a thread-safe PHP (--enable-zts)"
#endif

/* A name that opcache's list of SAPIs (accel_find_sapi()) holds in every release of the version. */
#if PHP_VERSION_ID < 80300
#define REGENT_NAME_FOR_OPCACHE "cli-server"
#else
#define REGENT_NAME_FOR_OPCACHE "frankenphp"
#endif

/* The thread table is sized ahead since 8.3. */
#if PHP_VERSION_ID < 80300
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

/* The signal of PHP's own timer (zend_set_timeout_ex()). */
#ifdef ZEND_MAX_EXECUTION_TIMERS
#define REGENT_PHP_TIMER_SIGNAL SIGRTMIN
#else
#define REGENT_PHP_TIMER_SIGNAL SIGPROF
#endif

#endif
