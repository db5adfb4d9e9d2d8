/* A module in C: a greeting, and the length of a body that is read in parts. */
#include "regent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static regent_string text(const char *literal) {
    regent_string string = {literal, strlen(literal)};
    return string;
}

static int hello(const regent_api *api, regent_request *request, void *state) {
    const regent_string *greeting = state;
    regent_string name = api->parameter(request, text("name"));
    api->set_header(request, text("Content-Type"), text("text/plain; charset=utf-8"));
    api->write(request, greeting->data, greeting->size);
    api->write(request, " ", 1);
    api->write(request, name.data, name.size);
    return api->write(request, "\n", 1);
}

static int length(const regent_api *api, regent_request *request, void *state) {
    (void)state;
    char buffer[16384], answer[32];
    unsigned long long bytes = 0;
    ptrdiff_t count;
    while ((count = api->read_body(request, buffer, sizeof buffer)) > 0)
        bytes += (unsigned long long)count;
    if (count < 0)
        return REGENT_ERROR;
    api->set_header(request, text("Content-Type"), text("text/plain"));
    int size = snprintf(answer, sizeof answer, "%llu\n", bytes);
    return api->write(request, answer, (size_t)size);
}

/* The greeting of this service, kept: what the host hands out ends with init. */
static regent_string *read_greeting(const regent_api *api, regent_instance *instance) {
    regent_string configured = api->configuration(instance, text("greeting"));
    if (!configured.data)
        configured = text("Hello");
    regent_string *greeting = malloc(sizeof *greeting + configured.size);
    if (!greeting)
        return NULL;
    char *copy = (char *)(greeting + 1);
    memcpy(copy, configured.data, configured.size);
    greeting->data = copy;
    greeting->size = configured.size;
    return greeting;
}

static int init(const regent_api *api, regent_instance *instance, void **state) {
    *state = read_greeting(api, instance);
    if (!*state)
        return api->fail(instance, text("out of memory"));
    const regent_route routes[] = {
        {sizeof(regent_route), "GET", "/hello/{name}", 0, hello, *state},
        {sizeof(regent_route), "POST", "/length", 0, length, NULL},
    };
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (api->route(instance, &routes[i]) != REGENT_OK)
            return REGENT_ERROR;
    return REGENT_OK;
}

static void cleanup(const regent_api *api, regent_instance *instance, void *state) {
    (void)api, (void)instance;
    free(state);
}

const regent_module_info *regent_module(const regent_api *api) {
    static const regent_module_info info = {
        .size = sizeof info,
        .abi = REGENT_ABI,
        .name = "hello-c",
        .version = "1.0",
        .init = init,
        .cleanup = cleanup,
    };
    return REGENT_HAS(api, refuse) ? &info : NULL;
}
