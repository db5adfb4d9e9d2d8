// Lets an exception pass, which regent.h forbids.
#include "regent.h"

#include <stdexcept>

static int throws(const regent_api *, regent_request *, void *) {
    throw std::runtime_error("nobody catches it");
}

static int init(const regent_api *api, regent_instance *instance, void **) {
    regent_route route = {sizeof route, "GET", "/throws", 0, throws, nullptr};
    return api->route(instance, &route);
}

static const regent_module_info info = {
    sizeof info, REGENT_ABI, 0, "throwing", "1.0", nullptr, 0, init, nullptr};

REGENT_EXPORT const regent_module_info *regent_module(const regent_api *) {
    return &info;
}
