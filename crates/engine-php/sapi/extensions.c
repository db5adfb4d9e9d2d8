/*
 * Shared extensions. PHP loads them so that they look for a name in the libraries which they need before the program
 * (RTLD_DEEPBIND), and so find the C library's functions instead of ours that stand for them (signal_calls.c, locale.c, ...).
 * Distributions have most extensions as such; the PHP that we build has none of those that matter.
 */
#include "engine.h"

#if !REGENT_PHP_HAS_THREADS
REGENT_INTERPOSED void *dlopen(const char *file, int mode)
{
    return REGENT_NEXT(dlopen)(file, mode & ~RTLD_DEEPBIND);
}
#endif
