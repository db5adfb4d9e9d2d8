/* What the modules of the tests share. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "regent.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED(name) (void)(name)

static inline regent_string text(const char *text) {
    return (regent_string){text, strlen(text)};
}

/* printf's %.*s of a regent_string. */
#define SHOW(string) (int)(string).size, (string).data ? (string).data : ""

static inline int print(const regent_api *api, regent_request *request, const char *format, ...) {
    char buffer[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return api->write(request, buffer, (size_t)length);
}

static inline unsigned long number(regent_string string) {
    unsigned long value = 0;
    for (size_t i = 0; i < string.size; i++)
        value = value * 10 + (unsigned long)(string.data[i] - '0');
    return value;
}

static inline int add(const regent_api *api, regent_instance *instance, const char *method, const char *path,
                      regent_handler handler, void *data) {
    regent_route route = {sizeof route, method, path, 0, handler, data};
    return api->route(instance, &route);
}

/* Answers with the path. */
static inline int answer_path(const regent_api *api, regent_request *request, void *data) {
    UNUSED(data);
    regent_string path = api->path(request);
    return api->write(request, path.data, path.size);
}

#endif
