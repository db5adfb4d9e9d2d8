/* Asks for all that a request has, and answers in all ways. */
#include "fixture.h"

#define HANDLER(name) static int name(const regent_api *api, regent_request *request, void *data)

HANDLER(hello) {
    UNUSED(data);
    api->set_header(request, text("Content-Type"), text("text/plain"));
    return print(api, request, "hello %.*s", SHOW(api->parameter(request, text("name"))));
}

HANDLER(echo) {
    UNUSED(data);
    char buffer[5000];
    ptrdiff_t count;
    while ((count = api->read_body(request, buffer, sizeof buffer)) > 0)
        if (api->write(request, buffer, (size_t)count) != REGENT_OK)
            return REGENT_ERROR;
    return (int)count;
}

HANDLER(large) {
    UNUSED(data);
    char buffer[1000];
    memset(buffer, '.', sizeof buffer);
    for (unsigned long left = number(api->parameter(request, text("bytes"))); left > 0;) {
        size_t part = left < sizeof buffer ? left : sizeof buffer;
        int status = api->write(request, buffer, part);
        if (status != REGENT_OK)
            return status;
        left -= part;
    }
    return REGENT_OK;
}

HANDLER(request_parts) {
    UNUSED(data);
    regent_string name, value;
    size_t cursor = 0;
    print(api, request, "method %.*s\n", SHOW(api->method(request)));
    print(api, request, "path %.*s\n", SHOW(api->path(request)));
    print(api, request, "target %.*s\n", SHOW(api->target(request)));
    print(api, request, "query %.*s\n", SHOW(api->query(request)));
    print(api, request, "rest %.*s\n", SHOW(api->parameter(request, text("rest"))));
    print(api, request, "x %.*s\n", SHOW(api->query_value(request, text("x"), 0)));
    print(api, request, "x again %.*s\n", SHOW(api->query_value(request, text("x"), 1)));
    print(api, request, "missing %d\n", api->query_value(request, text("x"), 2).data == NULL);
    print(api, request, "client %.*s\n", SHOW(api->variable(request, text("REMOTE_ADDR"))));
    print(api, request, "accept %.*s\n", SHOW(api->header(request, text("aCCept"))));
    print(api, request, "type %.*s\n", SHOW(api->header(request, text("Content-Type"))));
    print(api, request, "none %d\n", api->header(request, text("x-none")).data == NULL);
    print(api, request, "length %" PRIu64 "\n", api->body_length(request));
    while (api->next_header(request, &cursor, &name, &value) == REGENT_OK)
        print(api, request, "%.*s: %.*s\n", SHOW(name), SHOW(value));
    return print(api, request, "gone %d\n", api->is_gone(request));
}

HANDLER(json) {
    UNUSED(data);
    regent_json value = {.size = sizeof value};
    int status = api->json(request, api->query_value(request, text("at"), 0), &value);
    if (status == REGENT_BAD_REQUEST || status == REGENT_GONE)
        return status;
    if (status != REGENT_OK)
        return print(api, request, "status %d", status);
    return print(api, request, "%u %u %" PRId64 " %g %zu %.*s", value.kind, value.boolean, value.integer, value.number,
                 value.count, SHOW(value.text));
}

HANDLER(json_late) {
    char byte;
    api->read_body(request, &byte, 1);
    return json(api, request, data);
}

HANDLER(refuse) {
    UNUSED(data);
    api->set_header(request, text("X-Earlier"), text("gone"));
    print(api, request, "gone too");
    unsigned wanted = (unsigned)number(api->parameter(request, text("status")));
    int status = api->refuse(request, wanted, text("not \"like\" this"));
    if (status != REGENT_OK)
        return print(api, request, "!%d", status);
    api->set_header(request, text("Retry-After"), text("7"));
    return api->write(request, "late", 4) == REGENT_TOO_LATE ? REGENT_ERROR : REGENT_OK;
}

/* What the host makes of what a module should not do. */
HANDLER(invalid) {
    UNUSED(data);
    int statuses[] = {
        api->set_status(request, 199),
        api->set_status(request, 600),
        api->set_header(request, text("X Y"), text("v")),
        api->set_header(request, text("X"), text("a\r\nSet-Cookie: b")),
        api->add_header(request, text("X"), text("a\nb")),
        api->add_header(request, text("Transfer-Encoding"), text("chunked")),
        api->set_header(request, text("Content-Length"), text("x")),
        api->add_trailer(request, text("Content-Length"), text("1")),
        api->set_header(request, (regent_string){NULL, 5}, text("v")),
        api->write(request, NULL, 5),
        api->write(request, "x", SIZE_MAX),
        api->refuse(request, 200, text("fine")),
        (int)api->read_body(request, NULL, 5),
        api->json(request, text("no pointer"), &(regent_json){.size = sizeof(regent_json)}),
        api->json(request, text(""), &(regent_json){.size = 3}),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        print(api, request, "%d ", statuses[i]);
    return print(api, request, "%d", api->set_status(NULL, 200));
}

HANDLER(late) {
    UNUSED(data);
    api->set_status(request, 201);
    api->flush(request);
    int status = api->set_status(request, 202), header = api->set_header(request, text("X"), text("v"));
    return print(api, request, "%d %d %d", status, header, api->refuse(request, 500, text("")));
}

/* Announces so many bytes, and writes eight. */
HANDLER(length) {
    UNUSED(data);
    api->set_header(request, text("Content-Length"), api->parameter(request, text("bytes")));
    if (api->query(request).size > 0)
        api->flush(request);
    int status = api->write(request, "12345", 5);
    return status == REGENT_OK ? api->write(request, "123", 3) : status;
}

HANDLER(trailers) {
    UNUSED(data);
    api->add_trailer(request, text("X-Sum"), text("15"));
    return api->write(request, "12345", 5);
}

/* What is announced can follow a body that was sent, and nothing else. */
HANDLER(late_trailers) {
    UNUSED(data);
    api->add_header(request, text("Trailer"), text("X-A, X-Sum"));
    api->add_trailer(request, text("X-Early"), text("1"));
    api->flush(request);
    int sum = api->add_trailer(request, text("X-Sum"), text("15"));
    int early = api->add_trailer(request, text("X-Early"), text("2"));
    return print(api, request, "%d %d %d", sum, early, api->add_trailer(request, text("X-B"), text("3")));
}

HANDLER(status) {
    UNUSED(data);
    api->set_status(request, (unsigned)number(api->parameter(request, text("status"))));
    return api->write(request, "body", 4);
}

/* Fails before its answer has begun, and after that with a query. */
HANDLER(fails) {
    UNUSED(data);
    api->set_status(request, 201);
    api->write(request, "half", 4);
    if (api->query(request).size > 0)
        api->flush(request);
    return REGENT_ERROR;
}

/* Writes until nobody wants it any more. */
HANDLER(endless) {
    UNUSED(data);
    int status;
    while ((status = print(api, request, "tick\n")) == REGENT_OK && (status = api->flush(request)) == REGENT_OK) {
    }
    return status;
}

HANDLER(nothing) {
    UNUSED(api);
    UNUSED(request);
    UNUSED(data);
    return REGENT_OK;
}

HANDLER(crashes) {
    UNUSED(api);
    UNUSED(request);
    UNUSED(data);
    abort();
}

HANDLER(statistics) {
    regent_statistics s = {.size = sizeof s};
    api->statistics(data, &s);
    return print(api, request, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, s.requests,
                 s.answers[0], s.answers[2], s.answers[4], s.running, s.bytes);
}

static int init(const regent_api *api, regent_instance *instance, void **state) {
    UNUSED(state);
    regent_route quick = {sizeof quick, "GET", "/quick", REGENT_ROUTE_INLINE, hello, NULL};
    const struct {
        const char *method, *path;
        regent_handler handler;
    } routes[] = {
        {"GET", "/hello/{name}", hello},       {"POST", "/echo", echo},
        {"GET", "/large/{bytes}", large},      {NULL, "/request/{rest...}", request_parts},
        {"POST", "/json", json},               {"POST", "/json-late", json_late},
        {"GET", "/refuse/{status}", refuse},   {"GET", "/invalid", invalid},
        {"GET", "/late", late},                {"GET", "/length/{bytes}", length},
        {"GET", "/trailers", trailers},        {"GET", "/late-trailers", late_trailers},
        {"GET", "/status/{status}", status},   {"GET", "/fails", fails},
        {"GET", "/endless", endless},
        {"GET", "/nothing", nothing},          {"GET", "/crashes", crashes},
        {"GET", "/statistics", statistics},
    };
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (add(api, instance, routes[i].method, routes[i].path, routes[i].handler, instance) != REGENT_OK)
            return REGENT_ERROR;
    return api->route(instance, &quick);
}

static void cleanup(const regent_api *api, regent_instance *instance, void *state) {
    UNUSED(state);
    api->log(instance, REGENT_LOG_INFO, text("cleanup"));
}

static const regent_module_info info = {.size = sizeof info, .abi = REGENT_ABI, .name = "answers",
                                        .version = "1.0", .init = init, .cleanup = cleanup};

REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api) {
    UNUSED(api);
    return &info;
}
