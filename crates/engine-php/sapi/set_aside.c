/*
 * While PHP takes a request in, none of a script's code runs: in classic mode there is no script yet. A worker script has
 * handlers and objects from before. One that threw there would end with the request, and one that did not would see the
 * superglobals of the client before.
 */
#include "engine.h"

static void take(zval *from, zval *to)
{
    ZVAL_COPY_VALUE(to, from);
    ZVAL_UNDEF(from);
}

void regent_set_aside(regent_aside *aside)
{
    take(&EG(user_error_handler), &aside->error_handler);
    take(&EG(user_exception_handler), &aside->exception_handler);
    aside->collects_cycles = gc_enable(false); /* it would call destructors of what former requests have left */
    aside->follows_uploads = regent_session_leave_uploads();
    aside->is_set = true;
}

void regent_put_back(regent_aside *aside)
{
    if (!aside->is_set) {
        return;
    }
    /* session.auto_start has run save handlers of the script if it has some, and they may have set others. */
    zval_ptr_dtor(&EG(user_error_handler));
    zval_ptr_dtor(&EG(user_exception_handler));
    take(&aside->error_handler, &EG(user_error_handler));
    take(&aside->exception_handler, &EG(user_exception_handler));
    gc_enable(aside->collects_cycles);
    if (aside->follows_uploads) {
        regent_session_follow_uploads();
    }
    aside->is_set = false;
}

/* ---- Objects in the superglobals ------------------------------------------------------------------------------------- */

static bool holds_objects(zval *value)
{
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) == IS_OBJECT) {
        return true;
    }
    if (Z_TYPE_P(value) != IS_ARRAY || !Z_REFCOUNTED_P(value) || Z_IS_RECURSIVE_P(value)) {
        return false;
    }
    bool found = false;
    zval *entry;
    Z_PROTECT_RECURSION_P(value);
    ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(value), entry)
    {
        found = found || (Z_REFCOUNTED_P(entry) && holds_objects(entry));
    }
    ZEND_HASH_FOREACH_END();
    Z_UNPROTECT_RECURSION_P(value);
    return found;
}

static int remove_objects(zval *entry)
{
    return Z_REFCOUNTED_P(entry) && holds_objects(entry) ? ZEND_HASH_APPLY_REMOVE : ZEND_HASH_APPLY_KEEP;
}

static void release_objects(zval *global)
{
    ZVAL_DEREF(global);
    if (!holds_objects(global)) {
        return;
    }
    if (Z_TYPE_P(global) != IS_ARRAY) {
        zval former;
        ZVAL_COPY_VALUE(&former, global);
        ZVAL_EMPTY_ARRAY(global);
        zval_ptr_dtor(&former);
        return;
    }
    SEPARATE_ARRAY(global);
    zend_array *entries = Z_ARR_P(global);
    GC_ADDREF(entries); /* a destructor may give the superglobal another array */
    HT_ALLOW_COW_VIOLATION(entries);
    zend_hash_apply(entries, remove_objects);
    zend_array_release(entries);
}

/* $_ENV is not made anew. */
void regent_release_superglobals(void)
{
    static const char *const names[] = {"_GET", "_POST", "_COOKIE", "_FILES", "_SERVER", "_REQUEST"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        zval *global = zend_hash_str_find(&EG(symbol_table), names[i], strlen(names[i]));
        if (global != NULL) {
            release_objects(global);
        }
    }
}
