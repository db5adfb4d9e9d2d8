/*
 * What php.ini does not say, and what it may say.
 */
#include "engine.h"
#include <unistd.h>

static void set_default(HashTable *configuration, const char *name, size_t length, const char *value)
{
    zval text;
    ZVAL_NEW_STR(&text, zend_string_init(value, strlen(value), 1));
    zend_hash_str_update(configuration, name, length, &text);
}

/*
 * Off as in php.ini-production, also where PHP has no php.ini: as long as it is on, the query of a request is split into
 * $argv, and what takes that for a command line takes its options from clients (CVE-2024-52301). php.ini may set it.
 */
void regent_ini_defaults(HashTable *configuration)
{
    set_default(configuration, ZEND_STRL("register_argc_argv"), "0");
    /*
     * opcache knows only /tmp, which an engine that is confined may not write to where temporary files have another place. A
     * place that cannot be written to would be the end of PHP before it has begun.
     */
    const char *temporary = getenv("TMPDIR");
    if (temporary != NULL && temporary[0] == '/' && access(temporary, W_OK | X_OK) == 0) {
        set_default(configuration, ZEND_STRL("opcache.lockfile_path"), temporary);
    }
}

regent_str regent_php_ini_name(size_t index)
{
    regent_str none = {NULL, 0};
    zend_string *name;
    ZEND_HASH_FOREACH_STR_KEY(EG(ini_directives), name)
    {
        if (index-- == 0) {
            return (regent_str){ZSTR_VAL(name), ZSTR_LEN(name)};
        }
    }
    ZEND_HASH_FOREACH_END();
    return none;
}
