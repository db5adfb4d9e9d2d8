#include "scenario.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME(text) {text, sizeof(text) - 1}
const regent_str well_known_names[] = {
    NAME("REQUEST_METHOD"),  NAME("REQUEST_URI"),    NAME("QUERY_STRING"),    NAME("SCRIPT_NAME"),
    NAME("SCRIPT_FILENAME"), NAME("PATH_INFO"),      NAME("CONTENT_TYPE"),    NAME("CONTENT_LENGTH"),
    NAME("SERVER_PROTOCOL"), NAME("SERVER_SOFTWARE"), NAME("SERVER_NAME"),    NAME("SERVER_PORT"),
    NAME("SERVER_ADDR"),     NAME("REMOTE_ADDR"),    NAME("REMOTE_PORT"),     NAME("REMOTE_HOST"),
    NAME("DOCUMENT_ROOT"),   NAME("DOCUMENT_URI"),   NAME("GATEWAY_INTERFACE"), NAME("REQUEST_SCHEME"),
    NAME("HTTPS"),           NAME("HTTP_HOST"),      NAME("HTTP_USER_AGENT"), NAME("HTTP_ACCEPT"),
    NAME("HTTP_ACCEPT_LANGUAGE"), NAME("HTTP_ACCEPT_ENCODING"), NAME("HTTP_COOKIE"), NAME("HTTP_AUTHORIZATION"),
};
const size_t n_well_known_names = sizeof(well_known_names) / sizeof(well_known_names[0]);

enum { MAX_VARS = 128, MAX_REQUESTS = 256 };

static _Noreturn void fail(const char *what, const char *line)
{
    fprintf(stderr, "scenario: %s: %s\n", what, line);
    exit(2);
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL) {
        fail("no memory", "");
    }
    return memory;
}

/* "\n", "\r", "\0", "\\" and "\xNN" become bytes. */
static regent_str unescape(const char *text)
{
    char *out = allocate(strlen(text) + 1);
    size_t n = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c != '\\') {
            out[n++] = *c;
            continue;
        }
        c++;
        switch (*c) {
        case 'n': out[n++] = '\n'; break;
        case 'r': out[n++] = '\r'; break;
        case '0': out[n++] = '\0'; break;
        case '\\': out[n++] = '\\'; break;
        case 'x': {
            char digits[3] = {c[1], c[2], '\0'};
            out[n++] = (char)strtol(digits, NULL, 16);
            c += 2;
            break;
        }
        default: fail("unknown escape", text);
        }
    }
    return (regent_str){out, n};
}

static void add_var(regent_var *vars, size_t *n, regent_str name, regent_str value)
{
    regent_var *var = &vars[(*n)++];
    var->key = REGENT_KEY_OTHER;
    for (uint32_t i = 0; i < n_well_known_names; i++) {
        if (well_known_names[i].len == name.len && memcmp(well_known_names[i].ptr, name.ptr, name.len) == 0) {
            var->key = i;
        }
    }
    var->name = name;
    var->value = value;
}

static void add_request_var(regent_request *request, const char *name, regent_str value)
{
    if (request->n_vars == MAX_VARS) {
        fail("too many variables", name);
    }
    add_var((regent_var *)request->vars, &request->n_vars, (regent_str){strdup(name), strlen(name)}, value);
}

/* "NAME=value" */
static void add_pair(regent_var *vars, size_t *n, const char *pair)
{
    const char *equals = strchr(pair, '=');
    if (equals == NULL) {
        fail("NAME=value is wanted", pair);
    }
    add_var(vars, n, (regent_str){strndup(pair, (size_t)(equals - pair)), (size_t)(equals - pair)}, unescape(equals + 1));
}

static void add_header(regent_request *request, const char *line)
{
    char name[128] = "HTTP_";
    size_t n = 5;
    const char *c = line;
    for (; *c != '\0' && *c != ':' && n < sizeof(name) - 1; c++) {
        name[n++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    }
    if (*c != ':') {
        fail("Name: value is wanted", line);
    }
    c += 1 + strspn(c + 1, " ");
    regent_str value = unescape(c);
    if (strcmp(name, "HTTP_CONTENT_TYPE") == 0) {
        request->content_type = value;
        add_request_var(request, "CONTENT_TYPE", value);
        return;
    }
    if (strcmp(name, "HTTP_COOKIE") == 0) {
        request->cookie = value;
    } else if (strcmp(name, "HTTP_AUTHORIZATION") == 0) {
        request->authorization = value;
    }
    add_request_var(request, name, value);
}

static regent_str text(const char *value)
{
    return (regent_str){strdup(value), strlen(value)};
}

/* "GET /path?query" */
static planned *start_request(scenario *out, const char *line)
{
    if (out->n_requests == MAX_REQUESTS) {
        fail("too many requests", line);
    }
    planned *plan = &out->requests[out->n_requests++];
    const char *space = strchr(line, ' ');
    if (space == NULL) {
        fail("METHOD URI is wanted", line);
    }
    regent_request *request = &plan->request;
    request->vars = allocate(MAX_VARS * sizeof(regent_var));
    request->env = allocate(MAX_VARS * sizeof(regent_var));
    request->method = (regent_str){strndup(line, (size_t)(space - line)), (size_t)(space - line)};
    request->uri = text(space + 1);
    const char *query = strchr(request->uri.ptr, '?');
    size_t path_length = query != NULL ? (size_t)(query - request->uri.ptr) : request->uri.len;
    regent_str path = {strndup(request->uri.ptr, path_length), path_length};
    request->query_string = query != NULL ? text(query + 1) : (regent_str){"", 0};
    request->proto_num = 1001;
    plan->body_breaks_at = plan->leaves_after = plan->interrupted_after = -1;
    plan->repeat = 1;
    add_request_var(request, "REQUEST_METHOD", request->method);
    add_request_var(request, "REQUEST_URI", request->uri);
    add_request_var(request, "QUERY_STRING", request->query_string);
    add_request_var(request, "SCRIPT_NAME", path);
    add_request_var(request, "DOCUMENT_URI", path);
    add_request_var(request, "SERVER_PROTOCOL", text("HTTP/1.1"));
    add_request_var(request, "SERVER_SOFTWARE", text("Regent/test"));
    add_request_var(request, "SERVER_NAME", text("localhost"));
    add_request_var(request, "SERVER_PORT", text("80"));
    add_request_var(request, "SERVER_ADDR", text("127.0.0.1"));
    add_request_var(request, "REMOTE_ADDR", text("192.0.2.7"));
    add_request_var(request, "REMOTE_PORT", text("40000"));
    add_request_var(request, "REMOTE_HOST", text("192.0.2.7"));
    add_request_var(request, "REQUEST_SCHEME", text("http"));
    add_request_var(request, "HTTPS", (regent_str){"", 0});
    add_request_var(request, "GATEWAY_INTERFACE", text("CGI/1.1"));
    return plan;
}

static void set_body(planned *plan, const char *value)
{
    regent_str body = unescape(value);
    char length[24];
    plan->body = body.ptr;
    plan->body_size = body.len;
    plan->request.content_length = (int64_t)body.len;
    snprintf(length, sizeof(length), "%zu", body.len);
    add_request_var(&plan->request, "CONTENT_LENGTH", text(length));
}

/* "N": a body of N bytes 'x' */
static void set_large_body(planned *plan, const char *value)
{
    plan->body_size = (size_t)atoll(value);
    char *bytes = allocate(plan->body_size + 1);
    memset(bytes, 'x', plan->body_size);
    plan->body = bytes;
    plan->request.content_length = (int64_t)plan->body_size;
}

static void read_option(scenario *out, const char *word, const char *value)
{
    if (strcmp(word, "ini") == 0) {
        snprintf(out->ini + strlen(out->ini), sizeof(out->ini) - strlen(out->ini), "%s\n", value);
    } else if (strcmp(word, "threads") == 0) {
        out->threads = atoi(value);
    } else if (strcmp(word, "quiet") == 0) {
        out->quiet = true;
    } else if (strcmp(word, "worker") == 0) {
        out->worker = strdup(value);
    } else if (strcmp(word, "worker_env") == 0) {
        add_pair(out->worker_env, &out->n_worker_env, value);
    } else if (strcmp(word, "max_requests") == 0) {
        out->max_requests = (uint64_t)atoll(value);
    } else if (strcmp(word, "restarts") == 0) {
        out->restarts = atoi(value);
    } else {
        fail("unknown word", word);
    }
}

static void read_request_line(planned *plan, const char *word, const char *value)
{
    regent_request *request = &plan->request;
    if (strcmp(word, "script") == 0) {
        request->script_filename = text(value);
        add_request_var(request, "SCRIPT_FILENAME", request->script_filename);
    } else if (strcmp(word, "header") == 0) {
        add_header(request, value);
    } else if (strcmp(word, "var") == 0) {
        add_pair((regent_var *)request->vars, &request->n_vars, value);
    } else if (strcmp(word, "site_env") == 0) {
        add_pair((regent_var *)request->vars, &request->n_vars, value);
        add_pair((regent_var *)request->env, &request->n_env, value);
    } else if (strcmp(word, "body") == 0) {
        set_body(plan, value);
    } else if (strcmp(word, "large_body") == 0) {
        set_large_body(plan, value);
    } else if (strcmp(word, "chunked") == 0) {
        request->content_length = -1;
    } else if (strcmp(word, "http10") == 0) {
        request->proto_num = 1000;
    } else if (strcmp(word, "breaks_at") == 0) {
        plan->body_breaks_at = atoll(value);
    } else if (strcmp(word, "leaves_after") == 0) {
        plan->leaves_after = atoll(value);
    } else if (strcmp(word, "interrupted_after") == 0) {
        plan->interrupted_after = atoll(value);
    } else if (strcmp(word, "idle_before") == 0) {
        plan->idle_before = atol(value);
    } else if (strcmp(word, "repeat") == 0) {
        plan->repeat = atol(value);
    } else if (strcmp(word, "after_others") == 0) {
        plan->after_others = true;
    } else {
        fail("unknown word", word);
    }
}

void scenario_read(const char *path, scenario *out)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    planned *plan = NULL;
    if (file == NULL) {
        fail("cannot be opened", path);
    }
    out->threads = 1;
    out->requests = allocate(MAX_REQUESTS * sizeof(planned));
    while (getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *space = strchr(line, ' ');
        const char *value = space != NULL ? space + 1 : "";
        if (line[0] == '\0') {
            continue;
        }
        if (space != NULL) {
            *space = '\0';
        }
        if (strcmp(line, "request") == 0) {
            plan = start_request(out, value);
        } else if (plan != NULL) {
            read_request_line(plan, line, value);
        } else {
            read_option(out, line, value);
        }
    }
    free(line);
    fclose(file);
}
