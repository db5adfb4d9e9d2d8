/*
 * The handlers that pcntl_signal() has set while a worker script handled a request end with that request. pcntl keeps
 * them for the script's whole life (PCNTL_G(php_signal_table)), and they would run for the next client.
 */
#include "engine.h"

/* Stands for pcntl_async_signals() among the numbers of the signals. */
enum { ASYNC_SIGNALS = 0 };

static zif_handler next_signal, next_async_signals;

static void call(const char *name, size_t length, uint32_t n, zval *arguments, zval *result)
{
    zend_function *function = zend_hash_str_find_ptr(CG(function_table), name, length);
    ZVAL_UNDEF(result);
    if (function != NULL) {
        zend_call_known_function(function, NULL, NULL, result, n, arguments, NULL);
    }
}

/* Where to keep what the request replaces; NULL outside of a worker's requests and for what is kept already. */
static HashTable *place_for(zend_long number)
{
    regent_context *context = regent_guarded();
    if (context == NULL || !regent_is_worker(context) || context->phase == REGENT_OUTSIDE) {
        return NULL;
    }
    regent_touch(context, REGENT_TOUCHED_PCNTL);
    HashTable **handlers = &context->of_request.signal_handlers;
    if (*handlers == NULL) {
        *handlers = zend_new_array(4);
    }
    return zend_hash_index_exists(*handlers, (zend_ulong)number) ? NULL : *handlers;
}

static ZEND_FUNCTION(regent_pcntl_signal)
{
    zval *number = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
    bool is_signal = number != NULL && Z_TYPE_P(number) == IS_LONG && Z_LVAL_P(number) > 0 && Z_LVAL_P(number) < NSIG;
    HashTable *place = is_signal ? place_for(Z_LVAL_P(number)) : NULL;
    if (place != NULL) {
        zval handler;
        call(ZEND_STRL("pcntl_signal_get_handler"), 1, number, &handler);
        zend_hash_index_update(place, (zend_ulong)Z_LVAL_P(number), &handler);
    }
    next_signal(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_FUNCTION(regent_pcntl_async_signals)
{
    HashTable *place = ZEND_NUM_ARGS() > 0 ? place_for(ASYNC_SIGNALS) : NULL;
    if (place != NULL) {
        zval enabled;
        call(ZEND_STRL("pcntl_async_signals"), 0, NULL, &enabled);
        zend_hash_index_update(place, ASYNC_SIGNALS, &enabled);
    }
    next_async_signals(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void regent_pcntl_restore(HashTable *handlers)
{
    zend_ulong number;
    zval *former;
    ZEND_HASH_FOREACH_NUM_KEY_VAL(handlers, number, former)
    {
        zval arguments[2], result;
        ZVAL_LONG(&arguments[0], (zend_long)number);
        ZVAL_COPY_VALUE(&arguments[1], former);
        if (number == ASYNC_SIGNALS) {
            call(ZEND_STRL("pcntl_async_signals"), 1, &arguments[1], &result);
        } else {
            call(ZEND_STRL("pcntl_signal"), 2, arguments, &result);
        }
        zval_ptr_dtor(&result);
    }
    ZEND_HASH_FOREACH_END();
}

void regent_pcntl_override_functions(void)
{
    next_signal = regent_override_function("pcntl_signal", ZEND_FN(regent_pcntl_signal));
    next_async_signals = regent_override_function("pcntl_async_signals", ZEND_FN(regent_pcntl_async_signals));
}
