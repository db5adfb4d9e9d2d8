/*
 * $_SERVER: keys are strings that were made once, values are copied from the request in one pass.
 */
#include "engine.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The well-known names by the host's index; made at start, never freed. */
static struct {
    zend_string **names;
    zend_string **headers; /* the header that a name stands for, or NULL */
    size_t n;
    uint32_t php_self, script_name, path_info; /* UINT32_MAX: the host has no such name */
    zend_string *php_self_name;
    bool filtered; /* php.ini names a default filter: every value passes it */
} known;

static zend_string *make_header_name(const char *name, size_t length, int persistent);
static zend_array *take_last(regent_context *context);
static size_t keep_common(zend_array *server, const regent_var *vars, size_t n);
static void keep_for_next(regent_context *context, zend_array *server, size_t n);

/* A string that the engine neither counts nor frees. */
static zend_string *lasting(zend_string *text)
{
    zend_string_hash_val(text);
    GC_ADD_FLAGS(text, IS_STR_INTERNED);
    return text;
}

void regent_server_vars_start(const regent_options *options)
{
    known.n = options->n_well_known;
    known.names = calloc(known.n + 1, sizeof(zend_string *));
    known.headers = calloc(known.n + 1, sizeof(zend_string *));
    known.php_self = known.script_name = known.path_info = UINT32_MAX;
    known.php_self_name = lasting(zend_string_init(ZEND_STRL("PHP_SELF"), 1));
    for (uint32_t i = 0; i < known.n; i++) {
        regent_str name = options->well_known[i];
        zend_string *header = make_header_name(name.ptr, name.len, 1);
        known.names[i] = lasting(zend_string_init(name.ptr, name.len, 1));
        known.headers[i] = header != NULL ? lasting(header) : NULL;
        if (zend_string_equals_literal(known.names[i], "PHP_SELF")) {
            known.php_self = i;
        } else if (zend_string_equals_literal(known.names[i], "SCRIPT_NAME")) {
            known.script_name = i;
        } else if (zend_string_equals_literal(known.names[i], "PATH_INFO")) {
            known.path_info = i;
        }
    }
}

/* ---- Registration ---------------------------------------------------------------------------------------------- */

static const regent_var *current_vars(const regent_context *context, size_t *n)
{
    if (context->phase == REGENT_OUTSIDE) {
        *n = context->options->n_worker_env;
        return context->options->worker_env;
    }
    *n = context->request.n_vars;
    return context->request.vars;
}

/* The value as the input filter leaves it; false: the filter drops the variable. */
static bool filtered_value(const char *name, regent_str value, zval *out)
{
    size_t length = value.len;
    char *copy = estrndup(value.len > 0 ? value.ptr : "", value.len);
    bool keep = sapi_module.input_filter(PARSE_SERVER, name, &copy, value.len, &length) != 0;
    if (keep) {
        ZVAL_STRINGL(out, copy, length);
    }
    efree(copy);
    return keep;
}

static bool make_value(const char *name, regent_str value, zval *out)
{
    if (UNEXPECTED(known.filtered)) {
        return filtered_value(name, value, out);
    }
    if (value.len > 0) {
        ZVAL_STRINGL_FAST(out, value.ptr, value.len);
    } else {
        ZVAL_EMPTY_STRING(out);
    }
    return true;
}

/* php-fpm and Apache compute it the same way (cgi.fix_pathinfo). */
static void register_php_self(HashTable *server, const regent_str *script_name, const regent_str *path_info)
{
    zval value;
    ZVAL_STR(&value, zend_string_concat2(script_name->len ? script_name->ptr : "", script_name->len,
                                         path_info->len ? path_info->ptr : "", path_info->len));
    zend_hash_update(server, known.php_self_name, &value);
}

static void add_variable(HashTable *server, const regent_var *var)
{
    zval value;
    if (EXPECTED(var->key < known.n)) {
        if (make_value(ZSTR_VAL(known.names[var->key]), var->value, &value)) {
            zend_hash_update(server, known.names[var->key], &value);
        }
    } else if (make_value(var->name.ptr, var->value, &value)) {
        /* Not interned: clients choose these names, and a worker would keep each of them for ever. */
        zend_symtable_str_update(server, var->name.ptr, var->name.len, &value);
    }
}

static void add_php_self(HashTable *server, const regent_var *vars, size_t n)
{
    regent_str script_name = {NULL, 0}, path_info = {NULL, 0};
    for (size_t i = 0; i < n; i++) {
        if (vars[i].key == known.php_self) {
            return;
        } else if (vars[i].key == known.script_name) {
            script_name = vars[i].value;
        } else if (vars[i].key == known.path_info) {
            path_info = vars[i].value;
        }
    }
    register_php_self(server, &script_name, &path_info);
}

void regent_register_server_variables(zval *array)
{
    regent_context *context = regent_current();
    size_t n = 0, kept = 0;
    const regent_var *vars = context != NULL ? current_vars(context, &n) : NULL;
    zend_array *server = context != NULL ? take_last(context) : NULL;

    if (server != NULL) {
        kept = keep_common(server, vars, n);
    } else {
        server = regent_env_base_copy();
    }
    zval_ptr_dtor_nogc(array);
    ZVAL_ARR(array, server);
    if (context == NULL) {
        return;
    }
    for (size_t i = kept; i < n; i++) {
        add_variable(server, &vars[i]);
    }
    keep_for_next(context, server, n);
    add_php_self(server, vars, n);
    context->server_filtered = known.filtered;
}

/* ---- A worker's next $_SERVER ------------------------------------------------------------------------------------ */

/*
 * The requests of a worker have much the same variables in the same order, many with the same values. So a worker keeps
 * the array of its last request, unless a variable took the place of another or of the environment's, and makes the
 * next one of it. A script that changes $_SERVER, or keeps it, has an array of its own: this one has other owners.
 */
static void keep_for_next(regent_context *context, zend_array *server, size_t n)
{
    bool in_order = zend_hash_num_elements(server) == regent_env_base_size() + n;
    if (regent_is_worker(context) && context->phase != REGENT_OUTSIDE && in_order && !known.filtered) {
        GC_ADDREF(server);
        HT_ALLOW_COW_VIOLATION(server); /* PHP and we add to it before any script sees it */
        context->worker.last_server = server;
    }
}

/* PHP adds variables after us (php_register_server_variables(), phar) and may have put one in the environment's place. */
static bool environment_is_intact(const zend_array *server)
{
    const uint32_t base = regent_env_base_size();
    for (uint32_t i = 0; i < base; i++) {
        if (Z_TYPE_INFO(server->arData[i].val) != IS_INTERNED_STRING_EX) {
            return false;
        }
    }
    return true;
}

/* The last request's array if nobody else has it. Its place as $_SERVER is given up: the next one comes there at once. */
static zend_array *take_last(regent_context *context)
{
    zend_array *last = context->worker.last_server;
    if (last == NULL) {
        return NULL;
    }
    zval *global = zend_hash_find_known_hash(&EG(symbol_table), ZSTR_KNOWN(ZEND_STR_AUTOGLOBAL_SERVER));
    if (global != NULL && Z_TYPE_P(global) == IS_ARRAY && Z_ARR_P(global) == last) {
        ZVAL_NULL(global);
        GC_DELREF(last);
    }
    if (GC_REFCOUNT(last) > 1 || !environment_is_intact(last)) {
        regent_server_vars_forget(context);
        return NULL;
    }
    context->worker.last_server = NULL;
    return last;
}

void regent_server_vars_forget(regent_context *context)
{
    if (context->worker.last_server != NULL) {
        zend_array_release(context->worker.last_server);
        context->worker.last_server = NULL;
    }
}

static bool is_same(const zend_string *a, regent_str b)
{
    return ZSTR_LEN(a) == b.len && (b.len == 0 || memcmp(ZSTR_VAL(a), b.ptr, b.len) == 0);
}

static bool is_named(const zend_string *key, const regent_var *var)
{
    if (EXPECTED(var->key < known.n)) {
        return key == known.names[var->key];
    }
    return key != NULL && is_same(key, var->name);
}

/* Gives an entry the variable's value, if it has the variable's name. */
static bool keep_entry(Bucket *entry, const regent_var *var)
{
    if (Z_TYPE(entry->val) != IS_STRING || !is_named(entry->key, var)) {
        return false;
    }
    if (!is_same(Z_STR(entry->val), var->value)) {
        zval_ptr_dtor_str(&entry->val);
        make_value(NULL, var->value, &entry->val);
    }
    return true;
}

/* How many of the variables stay where they are. Everything behind them is removed. */
static size_t keep_common(zend_array *server, const regent_var *vars, size_t n)
{
    const uint32_t base = regent_env_base_size();
    size_t kept = 0;
    while (kept < n && base + kept < server->nNumUsed && keep_entry(&server->arData[base + kept], &vars[kept])) {
        kept++;
    }
    while (server->nNumUsed > base + kept) {
        zend_hash_del_bucket(server, &server->arData[server->nNumUsed - 1]);
    }
    server->nNextFreeElement = ZEND_LONG_MIN; /* as if no name had ever been a number */
    return kept;
}

/* ---- filter_input(INPUT_SERVER, …) ------------------------------------------------------------------------------ */

/*
 * The filter extension keeps its own copy of each variable that it was shown. Showing it all of $_SERVER in each
 * request costs more than $_SERVER itself, so it is shown when the script first asks.
 */
static void show_to_filter(void)
{
    regent_context *context = regent_current();
    if (context == NULL || context->server_filtered) {
        return;
    }
    context->server_filtered = true;
    zend_is_auto_global(ZSTR_KNOWN(ZEND_STR_AUTOGLOBAL_SERVER));
    size_t n;
    const regent_var *vars = current_vars(context, &n);
    for (size_t i = 0; i < n; i++) {
        zval unused;
        const char *name = vars[i].key < known.n ? ZSTR_VAL(known.names[vars[i].key]) : vars[i].name.ptr;
        if (filtered_value(name, vars[i].value, &unused)) {
            zval_ptr_dtor(&unused);
        }
    }
}

static zif_handler next_filter_input, next_filter_input_array, next_filter_has_var;

static ZEND_FUNCTION(regent_filter_input)
{
    show_to_filter();
    next_filter_input(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_FUNCTION(regent_filter_input_array)
{
    show_to_filter();
    next_filter_input_array(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_FUNCTION(regent_filter_has_var)
{
    show_to_filter();
    next_filter_has_var(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void regent_server_vars_override_functions(void)
{
    const char *filter = zend_ini_string("filter.default", sizeof("filter.default") - 1, 0);
    known.filtered = filter != NULL && *filter != '\0' && strcmp(filter, "unsafe_raw") != 0;
    next_filter_input = regent_override_function("filter_input", ZEND_FN(regent_filter_input));
    next_filter_input_array = regent_override_function("filter_input_array", ZEND_FN(regent_filter_input_array));
    next_filter_has_var = regent_override_function("filter_has_var", ZEND_FN(regent_filter_has_var));
}

/* ---- The headers behind the variables --------------------------------------------------------------------------- */

zend_string *regent_header_name(const regent_var *var)
{
    if (var->key < known.n) {
        return known.headers[var->key];
    }
    return make_header_name(var->name.ptr, var->name.len, 0);
}

/* "Accept-Language" of "HTTP_ACCEPT_LANGUAGE", as php-fpm's apache_request_headers() spells it. */
static zend_string *make_header_name(const char *name, size_t length, int persistent)
{
    if (length > 5 && memcmp(name, "HTTP_", 5) == 0) {
        name += 5;
        length -= 5;
    } else if (!(length == 12 && memcmp(name, "CONTENT_TYPE", 12) == 0) &&
               !(length == 14 && memcmp(name, "CONTENT_LENGTH", 14) == 0)) {
        return NULL;
    }
    zend_string *header = zend_string_init(name, length, persistent);
    bool first = true;
    for (char *c = ZSTR_VAL(header); *c != '\0'; c++) {
        *c = *c == '_' ? '-' : (char)(first ? toupper((unsigned char)*c) : tolower((unsigned char)*c));
        first = *c == '-';
    }
    return header;
}
