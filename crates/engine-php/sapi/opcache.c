/*
 * opcache never restarts in place. Its check that nobody uses the cache (accel_is_inactive()) asks for record locks of
 * other processes; with threads it finds none and empties the cache under the feet of the running requests. A restart
 * is wanted from the host instead, which replaces the whole engine.
 */
#include "engine.h"

#include <Zend/zend_extensions.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool enabled;

int regent_php_opcache_enabled(void)
{
    return enabled;
}

/* ---- opcache_reset() -------------------------------------------------------------------------------------------- */

/* As validate_api_restriction() of opcache. */
static bool api_is_allowed(void)
{
    const char *prefix = zend_ini_string("opcache.restrict_api", sizeof("opcache.restrict_api") - 1, 0);
    if (prefix == NULL || *prefix == '\0') {
        return true;
    }
    const char *script = SG(request_info).path_translated;
    if (script != NULL && strncmp(script, prefix, strlen(prefix)) == 0) {
        return true;
    }
    zend_error(E_WARNING, "Zend OPcache API is restricted by \"restrict_api\" configuration directive");
    return false;
}

/* opcache_reset(): bool */
static ZEND_FUNCTION(regent_opcache_reset)
{
    ZEND_PARSE_PARAMETERS_NONE();

    if (!enabled || !api_is_allowed()) {
        RETURN_FALSE;
    }
    regent_host_restart_wanted("opcache_reset()", regent_current());
    RETURN_TRUE;
}

void regent_opcache_override_functions(void)
{
    regent_override_function("opcache_reset", ZEND_FN(regent_opcache_reset));
}

/* ---- Restarts that opcache decides on --------------------------------------------------------------------------- */

#if REGENT_OPCACHE_HAS_RESTART_HOOK
static void restart_scheduled(int reason)
{
    static const char *const reasons[] = {"opcache is out of memory", "opcache's hash table is full", "opcache was reset"};
    regent_host_restart_wanted(reason >= 0 && reason < 3 ? reasons[reason] : "opcache wants a restart", NULL);
}
#endif

void regent_opcache_before_startup(void)
{
#if REGENT_OPCACHE_HAS_RESTART_HOOK
    zend_accel_schedule_restart_hook = restart_scheduled;
#endif
}

#if !REGENT_OPCACHE_HAS_RESTART_HOOK
enum { POLL_SECONDS = 2 };

static bool restart_is_pending(void)
{
    zend_function *function = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("opcache_get_status"));
    zval status, no_scripts;
    if (function == NULL) {
        return false;
    }
    ZVAL_UNDEF(&status);
    ZVAL_FALSE(&no_scripts);
    zend_call_known_function(function, NULL, NULL, &status, 1, &no_scripts, NULL);
    zval *pending = Z_TYPE(status) == IS_ARRAY ? zend_hash_str_find(Z_ARRVAL(status), ZEND_STRL("restart_pending")) : NULL;
    bool result = pending != NULL && Z_TYPE_P(pending) == IS_TRUE;
    zval_ptr_dtor(&status);
    return result;
}

/* Of all threads one asks every few seconds, until it was told once. */
void regent_opcache_poll(void)
{
    static _Atomic long next_poll;
    static atomic_flag told = ATOMIC_FLAG_INIT;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    long due = next_poll;
    if (!enabled || now.tv_sec < due || !atomic_compare_exchange_strong(&next_poll, &due, now.tv_sec + POLL_SECONDS)) {
        return;
    }
    if (restart_is_pending() && !atomic_flag_test_and_set(&told)) {
        regent_host_restart_wanted("opcache wants a restart", NULL);
    }
}
#else
void regent_opcache_poll(void)
{
}
#endif

/*
 * A restart that is pending waits while someone holds a read lock on the second byte of opcache's lock file. Ours is
 * bound to the open file, not to the process, so that opcache's own query (F_GETLK) sees it (fcntl(2), "Open file
 * description locks"). It is never released: until the host replaces this engine, scripts run uncached, but right.
 */
static bool hold_back_restarts(int lock_file)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
    return fcntl(lock_file, F_OFD_SETLK, &lock) == 0;
}

/* zend_shared_alloc_create_lock() names it so; the number itself is not to be had. */
static int find_lock_file(void)
{
    int found = -1;
    DIR *files = opendir("/proc/self/fd");
    if (files == NULL) {
        return -1;
    }
    for (struct dirent *entry = readdir(files); entry != NULL && found < 0; entry = readdir(files)) {
        char target[64];
        ssize_t length = readlinkat(dirfd(files), entry->d_name, target, sizeof(target) - 1);
        if (length > 0) {
            target[length] = '\0';
            if (strstr(target, "memfd:opcache_lock") != NULL || strstr(target, ".ZendSem.") != NULL) {
                found = atoi(entry->d_name);
            }
        }
    }
    closedir(files);
    return found;
}

void regent_opcache_after_startup(void)
{
    enabled = zend_get_extension("Zend OPcache") != NULL && regent_ini_long("opcache.enable") != 0;
    if (!enabled || regent_ini_long("opcache.file_cache_only") != 0) {
        return;
    }
    int lock_file = find_lock_file();
    if (lock_file < 0 || !hold_back_restarts(lock_file)) {
        regent_host_log_line(LOG_WARNING, "opcache's lock file was not found: a full opcache may restart under running requests");
    }
}
