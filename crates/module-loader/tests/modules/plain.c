/* A module whose description is given to the compiler: NAME, VERSION, ABI, SIZE, DEPENDENCY, DEPENDENCY_VERSION,
 * DEPENDENCIES (a number), ROUTES (statements), INIT_RESULT. It says in the log when it begins and ends. */
#include "fixture.h"

#ifndef NAME
#define NAME "plain"
#endif
#ifndef VERSION
#define VERSION "1.0"
#endif
#ifndef ABI
#define ABI REGENT_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(regent_module_info)
#endif
#ifndef DEPENDENCY_VERSION
#define DEPENDENCY_VERSION NULL
#endif
#ifndef ROUTES
#define ROUTES add(api, instance, "GET", "/" NAME, answer_path, NULL);
#endif
#ifndef INIT_RESULT
#define INIT_RESULT REGENT_OK
#endif

#ifdef DEPENDENCY
static const regent_dependency dependencies[] = {{DEPENDENCY, DEPENDENCY_VERSION}};
#ifndef DEPENDENCIES
#define DEPENDENCIES 1
#endif
#else
static const regent_dependency *const dependencies = NULL;
#ifndef DEPENDENCIES
#define DEPENDENCIES 0
#endif
#endif

static int init(const regent_api *api, regent_instance *instance, void **state) {
    regent_string greeting = api->configuration(instance, text("greeting"));
    char line[100];
    snprintf(line, sizeof line, "init %.*s", SHOW(greeting));
    api->log(instance, REGENT_LOG_INFO, text(line));
    *state = instance;
    ROUTES;
    return INIT_RESULT;
}

static void cleanup(const regent_api *api, regent_instance *instance, void *state) {
    api->log(instance, REGENT_LOG_INFO, text(state == instance ? "cleanup" : "cleanup of another state"));
}

REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api) {
    UNUSED(api);
    static regent_module_info info;
    info = (regent_module_info){
        .size = SIZE, .abi = ABI, .name = NAME, .version = VERSION, .dependencies = dependencies,
        .dependency_count = DEPENDENCIES, .init = init, .cleanup = cleanup,
    };
    return &info;
}
