/* As a module looks that was compiled with another header: one that ends earlier (OLDER) or goes further. */
#include "fixture.h"

#include <stddef.h>

static size_t end_of(size_t whole, size_t least) {
#ifdef OLDER
    UNUSED(whole);
    return least;
#else
    UNUSED(least);
    return whole + 64;
#endif
}

struct wide_info {
    regent_module_info info;
    char more[64];
};

struct wide_route {
    regent_route route;
    char more[64];
};

/* What is behind the size of the struct, or behind what the host knows of it, must stay as it is. */
static int statistics(const regent_api *api, regent_request *request, void *data) {
    struct {
        regent_statistics statistics;
        char more[64];
    } wide;
    memset(&wide, 0x55, sizeof wide);
    wide.statistics.size = end_of(sizeof(regent_statistics), offsetof(regent_statistics, running));
    if (api->statistics(data, &wide.statistics) != REGENT_OK)
        return REGENT_ERROR;
    size_t size = wide.statistics.size, known = sizeof wide.statistics;
    unsigned char behind = ((const unsigned char *)&wide)[size < known ? size : known];
    return print(api, request, "%" PRIu64 " %s", wide.statistics.requests, behind == 0x55 ? "untouched" : "overwritten");
}

static int init(const regent_api *api, regent_instance *instance, void **state) {
    UNUSED(state);
    struct wide_route wide;
    memset(&wide, 0x55, sizeof wide);
    wide.route = (regent_route){end_of(sizeof(regent_route), offsetof(regent_route, data)), "GET", "/path", 0,
                                answer_path, NULL};
    if (api->route(instance, &wide.route) != REGENT_OK)
        return REGENT_ERROR;
    return add(api, instance, "GET", "/statistics", statistics, instance);
}

/* Not to be called by a host that reads no further than `size`. */
static void cleanup(const regent_api *api, regent_instance *instance, void *state) {
    UNUSED(state);
    api->log(instance, REGENT_LOG_INFO, text("cleanup"));
}

REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api) {
    UNUSED(api);
    static struct wide_info wide;
    memset(&wide, 0x55, sizeof wide);
    wide.info = (regent_module_info){
        .size = end_of(sizeof(regent_module_info), offsetof(regent_module_info, cleanup)),
        .abi = REGENT_ABI, .name = "old", .version = "1.0", .init = init, .cleanup = cleanup,
    };
    return &wide.info;
}
