/* Offers an interface to others. */
#include "counter.h"
#include "fixture.h"

static uint64_t count;

static uint64_t next(void) {
    return ++count;
}

static const struct counter counter = {next};

static int init(const regent_api *api, regent_instance *instance, void **state) {
    UNUSED(state);
    if (api->offer(instance, text("counter"), 2, &counter) != REGENT_OK)
        return REGENT_ERROR;
    /* A second one of that name and version, and one that is not there, are refused. */
    if (api->offer(instance, text("counter"), 2, &counter) != REGENT_INVALID)
        return REGENT_ERROR;
    return api->offer(instance, text("nothing"), 1, NULL) == REGENT_INVALID ? REGENT_OK : REGENT_ERROR;
}

static const regent_module_info info = {
    .size = sizeof info, .abi = REGENT_ABI, .name = "provider", .version = "1.10", .init = init};

REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api) {
    UNUSED(api);
    return &info;
}
