/* Uses what the module `provider` offers. */
#include "counter.h"
#include "fixture.h"

static int count(const regent_api *api, regent_request *request, void *data) {
    return print(api, request, "%" PRIu64, ((const struct counter *)data)->next());
}

static int init(const regent_api *api, regent_instance *instance, void **state) {
    const struct counter *counter = api->find(instance, text("counter"), 2);
    if (!counter)
        return api->fail(instance, text("no counter"));
    if (api->find(instance, text("counter"), 1))
        return api->fail(instance, text("a counter of another version"));
    *state = instance;
    return add(api, instance, "GET", "/count", count, (void *)counter);
}

static const regent_dependency dependencies[] = {{"provider", "1.9"}};

static const regent_module_info info = {
    .size = sizeof info, .abi = REGENT_ABI, .name = "consumer", .version = "1.0",
    .dependencies = dependencies, .dependency_count = 1, .init = init};

REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api) {
    UNUSED(api);
    return &info;
}
