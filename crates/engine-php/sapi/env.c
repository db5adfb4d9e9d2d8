/*
 * The environment as scripts see it, in layers: that of the process, the site's `env` of the request, what a worker
 * script put while it booted, what the request put. putenv() of the C library is never called: it would change what
 * all other threads and their child processes see.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Made at start from the process's environment; its strings are interned, so that copies need no counting. */
static HashTable base;

static zend_string *lasting_string(const char *text, size_t length)
{
    zend_string *made = zend_string_init(text, length, 1);
    zend_string_hash_val(made);
    GC_ADD_FLAGS(made, IS_STR_INTERNED);
    return made;
}

/* As php_variables.c does (valid_environment_name()): these cannot be written as a variable's name. */
static bool is_valid_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (name[i] == ' ' || name[i] == '.' || name[i] == '[') {
            return false;
        }
    }
    return length > 0;
}

void regent_env_start(void)
{
    size_t n = 0;
    while (environ[n] != NULL) {
        n++;
    }
    /* The room for the request's variables spares $_SERVER, which starts as a copy, from growing. */
    zend_hash_init(&base, n + 96, NULL, NULL, 1);
    zend_hash_real_init_mixed(&base);
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');
        size_t length = equals != NULL ? (size_t)(equals - *entry) : 0;
        if (is_valid_name(*entry, length)) {
            zval value;
            ZVAL_INTERNED_STR(&value, lasting_string(equals + 1, strlen(equals + 1)));
            zend_hash_update(&base, lasting_string(*entry, length), &value);
        }
    }
}

zend_array *regent_env_base_copy(void)
{
    if (zend_hash_num_elements(&base) > 0) {
        return zend_array_dup(&base);
    }
    zend_array *empty = zend_new_array(96);
    zend_hash_real_init_mixed(empty);
    return empty;
}

uint32_t regent_env_base_size(void)
{
    return zend_hash_num_elements(&base);
}

/* ---- Look-up --------------------------------------------------------------------------------------------------- */

/* The site's variables of this request, or of the worker script while it boots. */
static const regent_var *site_env(const regent_context *context, size_t *n)
{
    if (context->phase == REGENT_OUTSIDE) {
        *n = context->options->n_worker_env;
        return context->options->worker_env;
    }
    *n = context->request.n_env;
    return context->request.env;
}

/* In a layer, false stands for a variable that was removed. */
static zval *find_in_layers(const regent_context *context, const char *name, size_t length)
{
    zval *found = NULL;
    if (context->env_request != NULL) {
        found = zend_hash_str_find(context->env_request, name, length);
    }
    if (found == NULL && context->env_boot != NULL) {
        found = zend_hash_str_find(context->env_boot, name, length);
    }
    return found;
}

/* The variable's value, its ptr NULL if it is not set. */
static regent_str find(const regent_context *context, const char *name, size_t length)
{
    regent_str none = {NULL, 0};
    if (context != NULL) {
        zval *layered = find_in_layers(context, name, length);
        if (layered != NULL) {
            return Z_TYPE_P(layered) == IS_STRING ? (regent_str){Z_STRVAL_P(layered), Z_STRLEN_P(layered)} : none;
        }
        size_t n;
        const regent_var *site = site_env(context, &n);
        for (size_t i = n; i-- > 0;) {
            if (site[i].name.len == length && memcmp(site[i].name.ptr, name, length) == 0) {
                return site[i].value.len > 0 ? site[i].value : (regent_str){"", 0};
            }
        }
    }
    zval *own = zend_hash_str_find(&base, name, length);
    return own != NULL ? (regent_str){Z_STRVAL_P(own), Z_STRLEN_P(own)} : none;
}

/* For PHP itself; no request may exist (php.ini's ${NAME}, preloading). */
char *regent_getenv(const char *name, size_t name_len)
{
    return (char *)find(regent_current(), name, name_len).ptr;
}

/* ---- All of it -------------------------------------------------------------------------------------------------- */

static void merge_layer(HashTable *into, HashTable *layer)
{
    zend_string *name;
    zval *value;
    if (layer == NULL) {
        return;
    }
    ZEND_HASH_FOREACH_STR_KEY_VAL(layer, name, value)
    {
        if (name == NULL) {
            continue; /* invariant: layers are filled by name */
        }
        if (Z_TYPE_P(value) == IS_STRING) {
            Z_TRY_ADDREF_P(value);
            zend_symtable_update(into, name, value);
        } else {
            zend_symtable_del(into, name);
        }
    }
    ZEND_HASH_FOREACH_END();
}

static void merge_variables(HashTable *into, const regent_var *variables, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        zval value;
        ZVAL_STRINGL(&value, variables[i].value.len > 0 ? variables[i].value.ptr : "", variables[i].value.len);
        zend_symtable_str_update(into, variables[i].name.ptr, variables[i].name.len, &value);
    }
}

static void merge_site(HashTable *into, const regent_context *context)
{
    size_t n;
    const regent_var *site = site_env(context, &n);
    merge_variables(into, site, n);
}

/*
 * $_ENV: the process's and the site's environment, without what scripts put (php_import_environment_variables). A worker
 * keeps its $_ENV, and PHP may make that when a request first compiles a script that names it (auto_globals_jit): the array
 * holds what the worker has been given for its boot, and nothing of that request.
 */
static void import_environment(zval *array)
{
    regent_context *context = regent_current();
    zend_hash_copy(Z_ARRVAL_P(array), &base, NULL);
    if (context != NULL && regent_is_worker(context)) {
        merge_variables(Z_ARRVAL_P(array), context->options->worker_env, context->options->n_worker_env);
    } else if (context != NULL) {
        merge_site(Z_ARRVAL_P(array), context);
    }
}

static zend_array *whole_environment(const regent_context *context)
{
    zend_array *all = regent_env_base_copy();
    if (context != NULL) {
        merge_site(all, context);
        merge_layer(all, context->env_boot);
        merge_layer(all, context->env_request);
    }
    return all;
}

/* ---- getenv() and putenv() --------------------------------------------------------------------------------------- */

/* getenv(?string $name = null, bool $local_only = false): string|array|false */
static ZEND_FUNCTION(regent_getenv)
{
    char *name = NULL;
    size_t length = 0;
    bool local_only = false;

    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        Z_PARAM_STRING_OR_NULL(name, length)
        Z_PARAM_BOOL(local_only)
    ZEND_PARSE_PARAMETERS_END();

    if (name == NULL) {
        RETURN_ARR(whole_environment(regent_current()));
    }
    regent_str value = find(regent_current(), name, length);
    if (value.ptr == NULL) {
        RETURN_FALSE;
    }
    RETURN_STRINGL(value.ptr, value.len);
}

static HashTable *layer_to_write(regent_context *context)
{
    HashTable **layer = context->phase == REGENT_OUTSIDE ? &context->env_boot : &context->env_request;
    if (*layer == NULL) {
        ALLOC_HASHTABLE(*layer);
        zend_hash_init(*layer, 8, NULL, ZVAL_PTR_DTOR, 0);
    }
    return *layer;
}

/* putenv(string $assignment): bool */
static ZEND_FUNCTION(regent_putenv)
{
    char *setting;
    size_t length;

    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STRING(setting, length)
    ZEND_PARSE_PARAMETERS_END();

    regent_context *context = regent_current();
    if (length == 0 || setting[0] == '=') {
        zend_argument_value_error(1, "must have a valid syntax");
        RETURN_THROWS();
    }
    if (context == NULL) {
        RETURN_FALSE;
    }
    const char *equals = strchr(setting, '=');
    zval value;
    if (equals != NULL) {
        ZVAL_STRING(&value, equals + 1);
    } else {
        ZVAL_FALSE(&value);
    }
    zend_hash_str_update(layer_to_write(context), setting, equals != NULL ? (size_t)(equals - setting) : strlen(setting), &value);
    RETURN_TRUE;
}

void regent_env_override_functions(void)
{
    php_import_environment_variables = import_environment;
    regent_override_function("getenv", ZEND_FN(regent_getenv));
    regent_override_function("putenv", ZEND_FN(regent_putenv));
}

void regent_env_free(HashTable **layer)
{
    if (*layer != NULL) {
        zend_hash_destroy(*layer);
        FREE_HASHTABLE(*layer);
        *layer = NULL;
    }
}

/* ---- Child processes --------------------------------------------------------------------------------------------- */

char **regent_env_for_children(void)
{
    regent_context *context = regent_current();
    size_t n_site = 0;
    if (context != NULL) {
        site_env(context, &n_site);
    }
    if (context == NULL || (n_site == 0 && context->env_boot == NULL && context->env_request == NULL)) {
        return NULL;
    }
    zend_array *all = whole_environment(context);
    size_t n = zend_hash_num_elements(all);
    size_t bytes = (n + 1) * sizeof(char *);
    zend_ulong index;
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(all, name, value)
    {
        bytes += (name != NULL ? ZSTR_LEN(name) : 20) + Z_STRLEN_P(value) + 2;
    }
    ZEND_HASH_FOREACH_END();

    char **list = malloc(bytes);
    if (list != NULL) {
        char **entry = list;
        char *text = (char *)(list + n + 1);
        char *end = (char *)list + bytes;
        ZEND_HASH_FOREACH_KEY_VAL(all, index, name, value)
        {
            *entry++ = text;
            int length = name != NULL ? snprintf(text, (size_t)(end - text), "%s=%s", ZSTR_VAL(name), Z_STRVAL_P(value))
                                      : snprintf(text, (size_t)(end - text), ZEND_ULONG_FMT "=%s", index, Z_STRVAL_P(value));
            text += length + 1;
        }
        ZEND_HASH_FOREACH_END();
        *entry = NULL;
    }
    zend_array_destroy(all);
    return list;
}
