/*
 * What php.ini does not say, and what it may say.
 */
#include "engine.h"

/*
 * Off as in php.ini-production, also where PHP has no php.ini: as long as it is on, the query of a request is split into
 * $argv, and what takes that for a command line takes its options from clients (CVE-2024-52301). php.ini may set it.
 */
void regent_ini_defaults(HashTable *configuration)
{
    zval off;
    ZVAL_NEW_STR(&off, zend_string_init(ZEND_STRL("0"), 1));
    zend_hash_str_update(configuration, ZEND_STRL("register_argc_argv"), &off);
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
