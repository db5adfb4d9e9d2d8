/*
 * openlog(): the C library knows one name for the whole process, and PHP closes the log at the end of each request
 * (PHP_RSHUTDOWN_FUNCTION(syslog)). Here each thread keeps its own name, which is set for each line.
 */
#include "engine.h"

#include <stdarg.h>
#include <syslog.h>

/* Nobody forks while another thread writes: the C library's own lock would stay locked in the child. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void regent_syslog_lock(void)
{
    pthread_mutex_lock(&lock);
}

void regent_syslog_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

REGENT_INTERPOSED void openlog(const char *name, int options, int facility)
{
    regent_context *context = regent_current();
    if (context == NULL) {
        REGENT_NEXT(openlog)(name, options, facility);
    } else {
        context->syslog = (regent_syslog){name, options, facility};
    }
}

/* The connection stays open for the others. */
REGENT_INTERPOSED void closelog(void)
{
    regent_context *context = regent_current();
    if (context == NULL) {
        REGENT_NEXT(closelog)();
    } else {
        context->syslog = (regent_syslog){NULL, 0, 0};
    }
}

static void write_line(int priority, const char *format, va_list arguments)
{
    regent_context *context = regent_current();
    if (context == NULL) {
        REGENT_NEXT(vsyslog)(priority, format, arguments);
        return;
    }
    const regent_syslog *own = &context->syslog;
    regent_syslog_lock();
    REGENT_NEXT(openlog)(own->name != NULL ? own->name : "php", own->options, own->facility != 0 ? own->facility : LOG_USER);
    REGENT_NEXT(vsyslog)(priority, format, arguments);
    REGENT_NEXT(openlog)("php", 0, LOG_USER); /* the name goes with the script */
    regent_syslog_unlock();
}

REGENT_INTERPOSED void syslog(int priority, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(priority, format, arguments);
    va_end(arguments);
}

/* What a PHP calls that was compiled with _FORTIFY_SOURCE. */
REGENT_INTERPOSED void __syslog_chk(int priority, int flag, const char *format, ...)
{
    va_list arguments;
    (void)flag;
    va_start(arguments, format);
    write_line(priority, format, arguments);
    va_end(arguments);
}
