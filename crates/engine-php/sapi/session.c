/*
 * The session extension: its session ends with each request, and none of its locks outlives a script that was ended in
 * the middle of a save handler. The extension may be a shared one, so its globals are reached through its entry and not by
 * their symbol.
 */
#include "engine.h"

#include <ext/session/php_session.h>

static zend_module_entry *module; /* NULL: not loaded */
static zend_result (*next_shutdown)(SHUTDOWN_FUNC_ARGS);

/*
 * A bailout within a save handler of a script (time limit, memory limit, fatal error) leaves in_save_handler set. Each
 * further call is refused then as a recursion, also that of close(), which would free the lock.
 */
static zend_result shut_down(SHUTDOWN_FUNC_ARGS)
{
    php_ps_globals *globals = regent_module_globals(module, php_ps_globals);
    globals->in_save_handler = 0;
    zend_result result = next_shutdown(SHUTDOWN_FUNC_ARGS_PASSTHRU);
    /* A close() of the script that died, too, has not come to that of SessionHandler. */
    if (globals->mod_user_is_open && globals->mod_data != NULL && globals->default_mod != NULL) {
        zend_try
        {
            globals->default_mod->s_close(&globals->mod_data);
        }
        zend_end_try();
        globals->mod_user_is_open = 0;
    }
    return result;
}

void regent_session_find(void)
{
    module = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("session"));
    if (module != NULL) {
        next_shutdown = module->request_shutdown_func;
        module->request_shutdown_func = shut_down;
    }
}

void regent_session_start(void)
{
    if (module != NULL) {
        module->request_startup_func(module->type, module->module_number);
    }
}

/*
 * php_session_rfc1867_callback() opens and writes the session while $_POST is made. Save handlers that a worker's script has set are
 * code of the application: they would see the superglobals of the client before, and what they throw would end the script.
 */
bool regent_session_leave_uploads(void)
{
    php_ps_globals *globals = module == NULL ? NULL : regent_module_globals(module, php_ps_globals);
    if (globals == NULL || globals->mod == NULL || strcmp(globals->mod->s_name, "user") != 0) {
        return false;
    }
    bool follows = globals->rfc1867_enabled;
    globals->rfc1867_enabled = false;
    return follows;
}

void regent_session_follow_uploads(void)
{
    regent_module_globals(module, php_ps_globals)->rfc1867_enabled = true;
}

/* Writes and closes the session. When it is this module's turn, PHP finds that it has none. */
void regent_session_shut_down(void)
{
    if (module != NULL) {
        regent_module_shut_down(module);
    }
}

/*
 * Writes and closes the session, and forgets its id, its data, and that a save handler is running. The save handlers
 * are kept: a script sets them once, while it boots.
 */
void regent_session_end(void)
{
    if (module == NULL) {
        return;
    }
    php_ps_globals *globals = regent_module_globals(module, php_ps_globals);
    zval handlers[sizeof(globals->mod_user_names) / sizeof(zval)];
    memcpy(handlers, &globals->mod_user_names, sizeof(handlers));
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        Z_TRY_ADDREF(handlers[i]);
    }
    regent_module_shut_down(module);
    memcpy(&globals->mod_user_names, handlers, sizeof(handlers));
    zend_hash_str_del(&EG(symbol_table), ZEND_STRL("_SESSION"));
}
