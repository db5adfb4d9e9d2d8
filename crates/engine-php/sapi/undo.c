/*
 * What a request has changed of its thread ends with it. Nothing is done for a request that has changed nothing: the
 * functions that change something note how it was before (regent_touch()).
 */
#include "engine.h"

#include <ext/standard/basic_functions.h>

static void restore(regent_context *context, regent_former *former);
static void forget(regent_former *former);
static void lose(regent_former *former);
static void reap(regent_context *context);
static void set_regex_options(zend_string *options);

/* What a worker script does outside of requests is meant for all of them. */
regent_former *regent_touch(regent_context *context, unsigned what)
{
    bool in_request = regent_is_worker(context) && context->phase != REGENT_OUTSIDE;
    regent_former *former = in_request ? &context->of_request : &context->of_script;
    if ((former->touched & what) != 0) {
        return NULL;
    }
    former->touched |= what;
    return former;
}

void regent_undo_request(regent_context *context)
{
    regent_former *former = &context->of_request;
    if ((former->touched == 0 && !context->reaps) || regent_in_forked_child()) {
        return;
    }
    if (former->regex_options != NULL) {
        set_regex_options(former->regex_options);
    }
    if (former->signal_handlers != NULL) {
        regent_pcntl_restore(former->signal_handlers);
    }
    if ((former->touched & REGENT_TOUCHED_LOCALE) != 0) {
        zend_string *used = BG(ctype_string);
        BG(ctype_string) = former->ctype_name;
        former->ctype_name = used;
    }
    if ((former->touched & REGENT_TOUCHED_SIGNALS) != 0) {
        regent_signals_end_request(context, former->blocked_signals);
    }
    restore(context, former);
    forget(former);
    reap(context);
}

void regent_undo_before_shutdown(regent_context *context)
{
    regent_former *former = context->of_script.regex_options != NULL ? &context->of_script : &context->of_request;
    if (former->regex_options != NULL) {
        set_regex_options(former->regex_options);
    }
    forget(&context->of_request);
    forget(&context->of_script);
}

void regent_undo_script(regent_context *context)
{
    if (regent_in_forked_child()) {
        return; /* it ends now */
    }
    if (((context->of_script.touched | context->of_request.touched) & REGENT_TOUCHED_SIGNALS) != 0) {
        regent_signals_reset(context);
    }
    restore(context, &context->of_request);
    restore(context, &context->of_script);
    lose(&context->of_request);
    lose(&context->of_script);
    reap(context);
}

static void reap(regent_context *context)
{
    if (context->reaps) {
        regent_thread_state_reap(context);
    }
}

static void restore(regent_context *context, regent_former *former)
{
    if ((former->touched & REGENT_TOUCHED_LOCALE) != 0) {
        regent_locale_restore(context, former->locale);
        former->locale = (locale_t)0;
    }
    if ((former->touched & REGENT_TOUCHED_TEXT_DOMAINS) != 0) {
        regent_text_domains_restore(context, &former->text_domains);
    }
    regent_thread_state_restore(context, former);
    former->touched = 0;
}

/* Frees what lies in the request's memory. */
static void forget(regent_former *former)
{
    if (former->ctype_name != NULL) {
        zend_string_release(former->ctype_name);
        former->ctype_name = NULL;
    }
    if (former->regex_options != NULL) {
        zend_string_release(former->regex_options);
        former->regex_options = NULL;
    }
    if (former->signal_handlers != NULL) {
        zend_array_destroy(former->signal_handlers);
        former->signal_handlers = NULL;
    }
}

/* A destructor that PHP called behind our part of the end may have set these anew, in the request's memory, which is gone. */
static void lose(regent_former *former)
{
    former->ctype_name = former->regex_options = NULL;
    former->signal_handlers = NULL;
}

/* ---- mb_regex_set_options(), which PHP keeps for the thread for good --------------------------------------------------- */

static zif_handler next_regex_options;

static void call_regex_options(uint32_t n, zval *arguments, zval *result)
{
    zend_function *function = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("mb_regex_set_options"));
    ZVAL_UNDEF(result);
    if (function != NULL) {
        zend_call_known_function(function, NULL, NULL, result, n, arguments, NULL);
    }
}

static void set_regex_options(zend_string *options)
{
    zval argument, result;
    ZVAL_STR(&argument, options);
    call_regex_options(1, &argument, &result);
    zval_ptr_dtor(&result);
}

static ZEND_FUNCTION(regent_mb_regex_set_options)
{
    regent_context *context = regent_current();
    regent_former *former =
        context != NULL && ZEND_NUM_ARGS() > 0 ? regent_touch(context, REGENT_TOUCHED_REGEX_OPTIONS) : NULL;
    if (former != NULL) {
        zval present;
        call_regex_options(0, NULL, &present);
        former->regex_options = Z_TYPE(present) == IS_STRING ? Z_STR(present) : NULL;
    }
    next_regex_options(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void regent_undo_override_functions(void)
{
    next_regex_options = regent_override_function("mb_regex_set_options", ZEND_FN(regent_mb_regex_set_options));
}
