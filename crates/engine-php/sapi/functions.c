/*
 * The PHP functions and constants that this SAPI adds. Each exists under the name that frameworks know and, where it is
 * not a standard one, under ours.
 */
#include "engine.h"

#include <Zend/zend_smart_str.h>
#include <ext/json/php_json.h>
#include <ext/standard/head.h>
#include <string.h>

/* The levels of frankenphp_log() are those of Go's slog. */
enum { LEVEL_DEBUG = -4, LEVEL_INFO = 0, LEVEL_WARN = 4, LEVEL_ERROR = 8 };

/* ---- Answering ---------------------------------------------------------------------------------------------------- */

/* frankenphp_finish_request(): bool, also fastcgi_finish_request() */
static ZEND_FUNCTION(frankenphp_finish_request)
{
    ZEND_PARSE_PARAMETERS_NONE();

    regent_context *context = regent_current();
    if (context == NULL || context->phase != REGENT_RUNNING) {
        RETURN_FALSE;
    }
    php_output_end_all();
    php_header();
    if (EG(exception) != NULL) {
        RETURN_THROWS(); /* an output handler threw */
    }
    regent_response_end(context);
    regent_request_limit_lift(context);
    context->phase = REGENT_FINISHED;
    RETURN_TRUE;
}

/* headers_send(int $status = 200): int; 1xx goes out at once and the response is still to come */
static ZEND_FUNCTION(headers_send)
{
    zend_long status = 200;

    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_LONG(status)
    ZEND_PARSE_PARAMETERS_END();

    if (status < 100 || status > 999) {
        zend_argument_value_error(1, "must be between 100 and 999");
        RETURN_THROWS();
    }
    regent_context *context = regent_current();
    if (context == NULL || context->phase == REGENT_OUTSIDE) {
        RETURN_LONG(SAPI_HEADER_SEND_FAILED);
    }
    if (status < 200) {
        RETURN_LONG(regent_send_informational(context, (int)status));
    }
    SG(sapi_headers).http_response_code = (int)status;
    RETURN_LONG(sapi_send_headers());
}

/* ---- Headers ------------------------------------------------------------------------------------------------------ */

/* frankenphp_request_headers(): array, also getallheaders() and apache_request_headers(); in the order of arrival */
static ZEND_FUNCTION(frankenphp_request_headers)
{
    ZEND_PARSE_PARAMETERS_NONE();

    regent_context *context = regent_current();
    array_init(return_value);
    if (context == NULL) {
        return;
    }
    for (size_t i = 0; i < context->request.n_vars; i++) {
        const regent_var *var = &context->request.vars[i];
        zend_string *name = regent_header_name(var);
        if (name == NULL) {
            continue;
        }
        zval value;
        ZVAL_STRINGL(&value, var->value.len > 0 ? var->value.ptr : "", var->value.len);
        zend_symtable_update(Z_ARRVAL_P(return_value), name, &value);
        zend_string_release(name);
    }
}

/* frankenphp_response_headers(): array|bool, also apache_response_headers(); of several lines of a name the last */
static ZEND_FUNCTION(frankenphp_response_headers)
{
    ZEND_PARSE_PARAMETERS_NONE();

    array_init(return_value);
    for (zend_llist_element *e = SG(sapi_headers).headers.head; e != NULL; e = e->next) {
        const sapi_header_struct *header = (const sapi_header_struct *)e->data;
        const char *end = header->header + header->header_len;
        const char *colon = memchr(header->header, ':', header->header_len);
        if (colon == NULL || colon == header->header) {
            continue;
        }
        const char *value = colon + 1;
        while (value < end && (*value == ' ' || *value == '\t')) {
            value++;
        }
        zval text;
        ZVAL_STRINGL(&text, value, (size_t)(end - value));
        zend_symtable_str_update(Z_ARRVAL_P(return_value), header->header, (size_t)(colon - header->header), &text);
    }
}

/* ---- Log ---------------------------------------------------------------------------------------------------------- */

static int syslog_level(zend_long level)
{
    if (level < LEVEL_INFO) {
        return LOG_DEBUG;
    }
    if (level < LEVEL_WARN) {
        return LOG_INFO;
    }
    return level < LEVEL_ERROR ? LOG_WARNING : LOG_ERR;
}

/* frankenphp_log(string $message, int $level = 0, array $context = []): void */
static ZEND_FUNCTION(frankenphp_log)
{
    zend_string *message;
    zend_long level = LEVEL_INFO;
    zval *context = NULL;

    ZEND_PARSE_PARAMETERS_START(1, 3)
        Z_PARAM_STR(message)
        Z_PARAM_OPTIONAL
        Z_PARAM_LONG(level)
        Z_PARAM_ARRAY(context)
    ZEND_PARSE_PARAMETERS_END();

    smart_str json = {0};
    if (context != NULL && zend_hash_num_elements(Z_ARRVAL_P(context)) > 0) {
        int options = PHP_JSON_PARTIAL_OUTPUT_ON_ERROR | PHP_JSON_INVALID_UTF8_SUBSTITUTE | PHP_JSON_UNESCAPED_SLASHES | PHP_JSON_UNESCAPED_UNICODE;
        if (zend_array_is_list(Z_ARRVAL_P(context))) {
            options |= PHP_JSON_FORCE_OBJECT; /* log fields have names */
        }
        php_json_encode(&json, context, options);
        if (EG(exception) != NULL) {
            smart_str_free(&json);
            RETURN_THROWS();
        }
    }
    regent_str text = {ZSTR_VAL(message), ZSTR_LEN(message)};
    regent_str fields = {NULL, 0};
    if (json.s != NULL) {
        smart_str_0(&json);
        fields = (regent_str){ZSTR_VAL(json.s), ZSTR_LEN(json.s)};
    }
    regent_host_log(regent_current(), syslog_level(level), text, fields);
    smart_str_free(&json);
}

void regent_register_constants(int module_number)
{
    static const struct {
        const char *suffix;
        zend_long level;
    } levels[] = {{"DEBUG", LEVEL_DEBUG}, {"INFO", LEVEL_INFO}, {"WARN", LEVEL_WARN}, {"ERROR", LEVEL_ERROR}};
    static const char *const prefixes[] = {"FRANKENPHP_LOG_LEVEL_", "REGENT_LOG_LEVEL_"};

    for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
        for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
            char name[48];
            int length = snprintf(name, sizeof(name), "%s%s", prefixes[p], levels[i].suffix);
            zend_register_long_constant(name, (size_t)length, levels[i].level, CONST_PERSISTENT, module_number);
        }
    }
}

/* ---- Built-in functions that are replaced ---------------------------------------------------------------------------- */

zif_handler regent_override_function(const char *name, zif_handler handler)
{
    zend_function *function = zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
    if (function == NULL || function->type != ZEND_INTERNAL_FUNCTION) {
        return NULL; /* disabled in php.ini, or its extension is not there */
    }
    zif_handler former = function->internal_function.handler;
    function->internal_function.handler = handler;
    return former;
}

/* ---- The table ------------------------------------------------------------------------------------------------------- */

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_handle_request, 0, 1, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, callback, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_finish_request, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_headers_send, 0, 0, IS_LONG, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "200")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_request_headers, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_MASK_EX(arginfo_response_headers, 0, 0, MAY_BE_ARRAY | MAY_BE_BOOL)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_log, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, level, IS_LONG, 0, "0")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_publish, 0, 1, IS_STRING, 0)
    ZEND_ARG_TYPE_MASK(0, topics, MAY_BE_STRING | MAY_BE_ARRAY, NULL)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, data, IS_STRING, 0, "\'\'")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, private, _IS_BOOL, 0, "false")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, id, IS_STRING, 1, "null")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, type, IS_STRING, 1, "null")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, retry, IS_LONG, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_cache_purge, 0, 0, IS_LONG, 0)
    ZEND_ARG_TYPE_MASK(0, tags, MAY_BE_STRING | MAY_BE_ARRAY, "[]")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, url, IS_STRING, 1, "null")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, prefix, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

const zend_function_entry regent_functions[] = {
    ZEND_FE(frankenphp_handle_request, arginfo_handle_request)
    ZEND_FALIAS(regent_handle_request, frankenphp_handle_request, arginfo_handle_request)
    ZEND_FE(frankenphp_finish_request, arginfo_finish_request)
    ZEND_FALIAS(regent_finish_request, frankenphp_finish_request, arginfo_finish_request)
    ZEND_FALIAS(fastcgi_finish_request, frankenphp_finish_request, arginfo_finish_request)
    ZEND_FE(headers_send, arginfo_headers_send)
    ZEND_FE(frankenphp_request_headers, arginfo_request_headers)
    ZEND_FALIAS(regent_request_headers, frankenphp_request_headers, arginfo_request_headers)
    ZEND_FALIAS(apache_request_headers, frankenphp_request_headers, arginfo_request_headers)
    ZEND_FALIAS(getallheaders, frankenphp_request_headers, arginfo_request_headers)
    ZEND_FE(frankenphp_response_headers, arginfo_response_headers)
    ZEND_FALIAS(regent_response_headers, frankenphp_response_headers, arginfo_response_headers)
    ZEND_FALIAS(apache_response_headers, frankenphp_response_headers, arginfo_response_headers)
    ZEND_FE(frankenphp_log, arginfo_log)
    ZEND_FALIAS(regent_log, frankenphp_log, arginfo_log)
    ZEND_FE(mercure_publish, arginfo_publish)
    ZEND_FE(regent_cache_purge, arginfo_cache_purge)
    ZEND_FE_END
};
