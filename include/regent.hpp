/* Native modules for Regent in C++17: a handler is one lambda. Header only, on top of regent.h; the guide is
 * docs/native.md.
 *
 *     #include "regent.hpp"
 *
 *     REGENT_MODULE("hello", "1.0") {
 *         app.get("/hello/{name}", [](regent::Request& request) {
 *             return "Hello " + request.path("name") + "\n";
 *         });
 *     }
 *
 *     c++ -std=c++17 -O2 -shared -fPIC -I include hello.cpp -o libhello.so
 *
 * Rules that hold everywhere:
 *  - Handlers run on many threads at the same time. What they share has to allow that.
 *  - A std::string_view that a Request hands out is valid until the handler returns.
 *  - Exceptions do not leave a module: Refused becomes the answer that it says, any other one 500 and a line in the log.
 *  - Everything here is hidden in the module that is compiled, so that modules of different compilers and of different
 *    versions of this header can be loaded side by side.
 */
#ifndef REGENT_HPP
#define REGENT_HPP

#include "regent.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <initializer_list>
#include <limits>
#include <locale>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

/* Begins a module: its name, its version and what it needs, then a block that adds routes to `app`, a regent::App. The
 * block runs once for each service that uses the module; an exception that leaves it says why the module cannot be used.
 *
 *     REGENT_MODULE("shop", "2.1", regent::needs("stock", "1.4")) { … }
 */
#define REGENT_MODULE(name, ...)                                                                      \
    static void regent_module_setup(::regent::App& app);                                              \
    extern "C" REGENT_EXPORT const regent_module_info* regent_module(const regent_api* api) {         \
        static const auto needs = ::regent::detail::needs_of(__VA_ARGS__);                            \
        static const regent_module_info info =                                                        \
            ::regent::detail::describe<&regent_module_setup>(name, ::regent::detail::version_of(__VA_ARGS__), needs); \
        return REGENT_HAS(api, refuse) ? &info : nullptr;                                             \
    }                                                                                                 \
    static void regent_module_setup([[maybe_unused]] ::regent::App& app)

namespace regent __attribute__((visibility("hidden"))) {

class App;
class Request;
class JsonView;
class Validation;

/* ---- what a handler throws ---- */

/* The request is answered with a problem document (RFC 9457): this status, 400 to 599, and this reason. */
class Refused : public std::runtime_error {
public:
    Refused(unsigned status, const std::string& reason) : std::runtime_error(reason), status_(status) {}
    unsigned status() const noexcept { return status_; }

private:
    unsigned status_;
};

/* Nobody waits for the answer any more: thrown by what reads the body or writes the answer, to be let through. */
class Gone : public std::exception {
public:
    const char* what() const noexcept override { return "nobody waits for the answer any more"; }
};

/* ---- JSON that is sent ---- */

/* A JSON value, made of numbers, bool, nullptr, text, std::optional, ranges, maps with text as keys, and of every type for
 * which there is a function `regent::Json to_json(const T&)` beside it. Text that is not UTF-8 has its wrong bytes
 * replaced by U+FFFD; numbers that JSON does not know (infinite, NaN) are null. */
class Json {
public:
    Json() : text_("null") {}
    template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, Json>>>
    Json(const T& value); // NOLINT(google-explicit-constructor): {{"id", 7}} is the point of it

    const std::string& text() const& noexcept { return text_; }
    std::string text() && noexcept { return std::move(text_); }

    /* What is JSON already; not checked. */
    static Json verbatim(std::string text) {
        Json json{Unset{}};
        json.text_ = std::move(text);
        return json;
    }

private:
    struct Unset {};
    explicit Json(Unset) {}
    std::string text_;
};

/* regent::object({{"id", 7}, {"tags", tags}}) */
Json object(std::initializer_list<std::pair<std::string_view, Json>> members);
/* regent::array({1, "two", nullptr}) */
Json array(std::initializer_list<Json> elements);

/* ---- answers ---- */

/* A whole answer. Text and Json convert to it: a handler may return either. */
class Answer {
public:
    explicit Answer(unsigned status) : status_(status) {}
    Answer(std::string text) : Answer("text/plain; charset=utf-8", std::move(text)) {}
    Answer(std::string_view text) : Answer(std::string(text)) {}
    Answer(const char* text) : Answer(std::string(text)) {}
    Answer(Json json) : Answer("application/json", std::move(json).text()) {}
    Answer(std::string_view content_type, std::string body) : body_(std::move(body)) {
        header("Content-Type", content_type);
    }

    /* 200 to 599. */
    Answer& status(unsigned status) & {
        status_ = status;
        return *this;
    }
    Answer&& status(unsigned status) && { return std::move(this->status(status)); }

    /* One field more; several of one name are sent as they are. */
    Answer& header(std::string_view name, std::string_view value) & {
        headers_.emplace_back(name, value);
        return *this;
    }
    Answer&& header(std::string_view name, std::string_view value) && { return std::move(header(name, value)); }

    unsigned status() const noexcept { return status_; }
    const std::string& body() const noexcept { return body_; }
    const std::vector<std::pair<std::string, std::string>>& headers() const noexcept { return headers_; }

private:
    unsigned status_ = 200;
    std::vector<std::pair<std::string, std::string>> headers_;
    std::string body_;
};

inline Answer text(std::string text) { return Answer(std::move(text)); }
inline Answer html(std::string text) { return {"text/html; charset=utf-8", std::move(text)}; }
inline Answer json(Json value) { return Answer(std::move(value)); }
inline Answer content(std::string_view type, std::string body) { return {type, std::move(body)}; }
inline Answer empty(unsigned status = 204) { return Answer(status); }
inline Answer redirect(std::string_view location, unsigned status = 303) {
    return Answer(status).header("Location", location);
}

/* An answer that is sent while it is made: the second argument of a handler. Everything throws Gone when the client
 * has left. */
class Stream {
public:
    Stream(const regent_api* api, regent_request* request) noexcept : api_(api), request_(request) {}

    /* Before the first byte of the body. */
    Stream& status(unsigned status);
    /* In the place of earlier fields of that name. */
    Stream& header(std::string_view name, std::string_view value);
    /* Beside earlier fields of that name. */
    Stream& add_header(std::string_view name, std::string_view value);
    /* Waits while the client is slow and the server keeps enough for it already. */
    Stream& write(std::string_view bytes);
    /* Sends now what was written. */
    Stream& flush();
    /* A field behind the body, for clients that said `TE: trailers`. Its name has to be in a header field `Trailer`, unless
     * nothing of the body was sent yet. */
    Stream& trailer(std::string_view name, std::string_view value);

private:
    const regent_api* api_;
    regent_request* request_;
};

/* ---- what a value must be ----
 * A rule is called with a value and says what is wrong with it, if anything, in words that follow the name of the value:
 * "must be even". Any lambda will do: [](const int& n) -> regent::Wrong { if (n % 2) return "must be even"; return {}; } */
using Wrong = std::optional<std::string>;

template <class Low, class High>
auto between(Low low, High high);
/* Of text: characters; else elements. */
inline auto length(size_t least, size_t most);
template <class... Allowed>
auto one_of(Allowed... allowed);

/* How text becomes a T: there is one for text, bool ("true" or "false"), integers and floating point. One for a type of your
 * own makes it usable everywhere:
 *
 *     template <> struct regent::FromText<Colour> {
 *         static std::optional<Colour> parse(std::string_view text);
 *         static std::string expected() { return "red, green or blue"; }
 *     };
 */
template <class T, class = void>
struct FromText;

/* ---- requests ----
 * path, query, header and json give a value of the type that is asked for:
 *
 *     request.query<int>("page")                                has to be there, or the client gets 400
 *     request.query<int>("page", 1)                             1 if it is not there
 *     request.query<std::optional<int>>("page")                 may be missing
 *     request.query<std::vector<int>>("id")                     all of them
 *     request.query<int>("page", 1, regent::between(1, 100))    within bounds, or 400; any number of rules
 *
 * What is not of the type or breaks a rule is answered with 400 and the reason, by throwing Refused. */
class Request {
public:
    Request(const regent_api* api, regent_request* request) noexcept : api_(api), request_(request) {}
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    std::string_view method() const noexcept;
    /* Decoded, without the query. */
    std::string_view path() const noexcept;
    /* As the client sent it: path and query. */
    std::string_view target() const noexcept;
    std::string_view query_string() const noexcept;

    /* A parameter of the route's path. */
    template <class T = std::string, class... Rules>
    T path(std::string_view name, const Rules&... rules) const;

    template <class T = std::string, class... More>
    T query(std::string_view name, const More&... more) const;

    /* Several fields of one name are joined by ", ". */
    template <class T = std::string, class... More>
    T header(std::string_view name, const More&... more) const;

    /* All header fields, names in lower case. */
    std::vector<std::pair<std::string_view, std::string_view>> headers() const;

    /* A value of the JSON body by its pointer (RFC 6901): "/user/name"; "" is the whole. null counts as missing. T may
     * also be a std::vector, or a type that can be made of a const regent::JsonView&. */
    template <class T, class... More>
    T json(std::string_view pointer, const More&... more) const;
    template <class T>
    T json() const {
        return json<T>("");
    }

    /* The same accessors, but what is wrong is collected: the client learns all of it at once. */
    Validation validation() const noexcept;

    /* What is known of the connection, by CGI's names: REMOTE_ADDR, SERVER_NAME, REQUEST_SCHEME … Empty if unknown. */
    std::string_view variable(std::string_view name) const noexcept;

    /* Bytes, if the client said so beforehand. */
    std::optional<uint64_t> body_length() const noexcept;
    /* Waits for the next part of the body. How many bytes were read; 0 at the end. Throws Gone. */
    size_t read(void* buffer, size_t size) const;
    /* The rest of the body. One of more than `limit` bytes is refused with 413. Throws Gone. */
    std::string body(size_t limit = size_t(8) << 20) const;

    /* Whether nobody waits for the answer any more. */
    bool gone() const noexcept { return api_->is_gone(request_) != 0; }

    regent_request* raw() const noexcept { return request_; }

private:
    friend class JsonView;
    const regent_api* api_;
    regent_request* request_;
};

/* A part of the JSON body; pointers are relative to it. */
class JsonView {
public:
    JsonView(const Request& request, std::string pointer) noexcept
        : request_(request), pointer_(std::move(pointer)) {}

    template <class T, class... More>
    T get(std::string_view pointer, const More&... more) const;

private:
    template <class T>
    std::optional<T> read() const;
    template <class T>
    T convert(const regent_json& value) const;
    template <class Elements>
    Elements convert_array(const regent_json& value) const;
    std::string name() const;

    const Request& request_;
    std::string pointer_;
};

/* Reads several values, then check() refuses the request with all that was wrong:
 *
 *     auto valid = request.validation();
 *     Note note{valid.json<std::string>("/title", regent::length(1, 80)), valid.json<int>("/priority", 0)};
 *     valid.check();
 */
class Validation {
public:
    explicit Validation(const Request& request) noexcept : request_(request) {}

    /* What is wrong gives T{}. */
    template <class T = std::string, class... Rules>
    T path(std::string_view name, const Rules&... rules) {
        return collect([&] { return request_.path<T>(name, rules...); });
    }
    template <class T = std::string, class... More>
    T query(std::string_view name, const More&... more) {
        return collect([&] { return request_.query<T>(name, more...); });
    }
    template <class T = std::string, class... More>
    T header(std::string_view name, const More&... more) {
        return collect([&] { return request_.header<T>(name, more...); });
    }
    template <class T, class... More>
    T json(std::string_view pointer, const More&... more) {
        return collect([&] { return request_.json<T>(pointer, more...); });
    }

    /* A condition of your own: `reason` if it does not hold. */
    void require(bool holds, std::string reason) {
        if (!holds) reasons_.push_back(std::move(reason));
    }

    /* Throws Refused with status 400, unless all is well. */
    void check() const;

private:
    template <class Read>
    auto collect(Read read) -> decltype(read());

    const Request& request_;
    std::vector<std::string> reasons_;
};

/* ---- the module ---- */

/* What modules call each other by: a member `static constexpr regent::Interface interface{"stock", 1}` of a struct of
 * functions. The struct is shared by modules that may come from different compilers, so it must be one that C has too. */
struct Interface {
    const char* name;
    uint32_t version;
};

constexpr regent_dependency needs(const char* name, const char* version = nullptr) { return {name, version}; }

enum class Level {
    error = REGENT_LOG_ERROR,
    warning = REGENT_LOG_WARNING,
    info = REGENT_LOG_INFO,
    debug = REGENT_LOG_DEBUG
};

/* What a route promises. */
enum class Promise : uint32_t {
    nothing = 0,
    /* No lock, file, socket or sleep, and less than about 50 microseconds: may run in the server itself, if the site's
     * configuration says `inline`. */
    never_blocks = REGENT_ROUTE_INLINE
};
inline constexpr Promise never_blocks = Promise::never_blocks;

/* Requests of this service since its process started. */
struct Statistics {
    uint64_t requests = 0;
    /* By the first digit of the status: [2] are 200 to 299. [0]: broken off. */
    std::array<uint64_t, 6> answers{};
    /* The one that asks among them. */
    uint64_t running = 0;
    /* Of the answers' bodies. */
    uint64_t bytes = 0;
};
Json to_json(const Statistics& statistics);

/* The module as one service uses it. Lives until the last handler has returned: handlers may keep a reference to it. */
class App {
public:
    App(const regent_api* api, regent_instance* instance) noexcept : api_(api), instance_(instance) {}
    App(const App&) = delete;
    App& operator=(const App&) = delete;
    ~App() {
        while (!owned_.empty()) owned_.pop_back();
    }

    /* A handler is called with a Request& and returns what becomes an Answer, or with a Request& and a Stream&. It is
     * called by many threads at once. "/users/{id}" takes one segment of the path, "/files/{path...}" the rest.
     * HEAD, OPTIONS, 404 and 405 are answered without you. Throws when there is such a route already. */
    template <class F>
    void get(const std::string& path, F handler, Promise promise = Promise::nothing) {
        route("GET", path, std::move(handler), promise);
    }
    template <class F>
    void post(const std::string& path, F handler, Promise promise = Promise::nothing) {
        route("POST", path, std::move(handler), promise);
    }
    template <class F>
    void put(const std::string& path, F handler, Promise promise = Promise::nothing) {
        route("PUT", path, std::move(handler), promise);
    }
    template <class F>
    void patch(const std::string& path, F handler, Promise promise = Promise::nothing) {
        route("PATCH", path, std::move(handler), promise);
    }
    template <class F>
    void del(const std::string& path, F handler, Promise promise = Promise::nothing) {
        route("DELETE", path, std::move(handler), promise);
    }
    /* Every method. */
    template <class F>
    void any(const std::string& path, F handler, Promise promise = Promise::nothing) {
        route(nullptr, path, std::move(handler), promise);
    }
    /* A method of your choice; nullptr: every one. */
    template <class F>
    void route(const char* method, const std::string& path, F handler, Promise promise = Promise::nothing);

    /* A `config` line of the site's configuration, asked for as Request::query is: a std::vector has all of that name. Only
     * within the block. */
    template <class T = std::string, class... More>
    T config(std::string_view name, const More&... more) const;
    /* All of them, in order. */
    std::vector<std::pair<std::string, std::string>> configuration() const;

    /* An object that lives until the last handler has returned; what was made last ends first. */
    template <class T, class... Arguments>
    T& make(Arguments&&... arguments);

    /* Offers a struct of functions to modules that need this one. */
    template <class T>
    void offer(const T& functions);
    /* What a module that this one needs offers; nullptr if none does. */
    template <class T>
    const T* find() const;
    /* The same; throws if none does. */
    template <class T>
    const T& require() const;

    void log(Level level, std::string_view message) const noexcept;
    void error(std::string_view message) const noexcept { log(Level::error, message); }
    void warning(std::string_view message) const noexcept { log(Level::warning, message); }
    void info(std::string_view message) const noexcept { log(Level::info, message); }
    void debug(std::string_view message) const noexcept { log(Level::debug, message); }

    Statistics statistics() const noexcept;

private:
    using Owned = std::unique_ptr<void, void (*)(void*)>;

    const regent_api* api_;
    regent_instance* instance_;
    std::vector<Owned> owned_;
};

/* ======== how it works; nothing below is meant to be used by name ======== */

namespace detail {

inline regent_string to_c(std::string_view text) noexcept { return {text.data() ? text.data() : "", text.size()}; }

inline std::string_view view(regent_string text) noexcept {
    return text.data ? std::string_view(text.data, text.size) : std::string_view();
}

inline std::optional<std::string_view> present(regent_string text) noexcept {
    if (!text.data) return std::nullopt;
    return std::string_view(text.data, text.size);
}

inline void check(int status, const std::string& call) {
    switch (status) {
    case REGENT_OK: return;
    case REGENT_GONE: throw Gone();
    case REGENT_TOO_LATE: throw std::logic_error(call + " comes too late: the answer has begun, or init is over");
    case REGENT_INVALID: throw std::invalid_argument(call + " cannot be used");
    default: throw std::runtime_error(call + " failed with status " + std::to_string(status));
    }
}

/* Long enough to recognise, short enough to be sent back. */
inline std::string quoted(std::string_view text) {
    constexpr size_t most = 60;
    return "`" + std::string(text.substr(0, most)) + (text.size() > most ? "…`" : "`");
}

/* ---- JSON ---- */

/* Bytes of the character that the text begins with; 0 if it is not UTF-8 (Unicode 15, table 3-7). */
inline size_t character_length(std::string_view text) noexcept {
    const auto follows = [text](size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
        return i < text.size() && low <= static_cast<unsigned char>(text[i]) &&
               static_cast<unsigned char>(text[i]) <= high;
    };
    const unsigned first = static_cast<unsigned char>(text[0]);
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    if (first < 0xE0) return follows(1) ? 2 : 0;
    if (first < 0xF0) {
        const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
        return follows(1, low, high) && follows(2) ? 3 : 0;
    }
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
}

inline void append_escape(std::string& out, char c) {
    constexpr std::string_view special = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    out += '\\';
    if (const size_t at = special.find(c); at != special.npos) {
        out += letters[at];
    } else {
        constexpr char digits[] = "0123456789abcdef";
        out += "u00";
        out += digits[static_cast<unsigned char>(c) >> 4];
        out += digits[static_cast<unsigned char>(c) & 15];
    }
}

inline void append_text(std::string& out, std::string_view text) {
    out += '"';
    while (!text.empty()) {
        const auto plain = static_cast<size_t>(std::find_if(text.begin(), text.end(), [](unsigned char c) {
            return c < 0x20 || c >= 0x80 || c == '"' || c == '\\';
        }) - text.begin());
        out += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.empty()) break;
        if (static_cast<unsigned char>(text[0]) < 0x80) {
            append_escape(out, text[0]);
            text.remove_prefix(1);
        } else {
            const size_t length = character_length(text);
            out += length ? text.substr(0, length) : "\xEF\xBF\xBD";
            text.remove_prefix(length ? length : 1);
        }
    }
    out += '"';
}

/* The shorter of two forms, if it is as exact; whatever the process's locale. */
inline std::string floating(double value) {
    for (const int digits : {std::numeric_limits<double>::digits10, std::numeric_limits<double>::max_digits10}) {
        std::ostringstream out;
        out.imbue(std::locale::classic());
        out.precision(digits);
        out << value;
        std::istringstream back(out.str());
        back.imbue(std::locale::classic());
        double read = 0;
        if ((back >> read && read == value) || digits == std::numeric_limits<double>::max_digits10) return out.str();
    }
    return {};
}

template <class T, class = void>
struct has_to_json : std::false_type {};
template <class T>
struct has_to_json<T, std::void_t<decltype(to_json(std::declval<const T&>()))>> : std::true_type {};

template <class T, class = void>
struct is_map : std::false_type {};
template <class T>
struct is_map<T, std::void_t<typename T::mapped_type>> : std::true_type {};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

template <class T>
struct is_vector : std::false_type {};
template <class T, class A>
struct is_vector<std::vector<T, A>> : std::true_type {};

template <class T>
constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char> &&
                            !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char16_t> &&
                            !std::is_same_v<T, char32_t>;

template <class>
constexpr bool never = false;

template <class Range, class Append>
void append_list(std::string& out, std::string_view brackets, const Range& range, Append append) {
    out += brackets[0];
    bool first = true;
    for (const auto& element : range) {
        if (!first) out += ',';
        first = false;
        append(element);
    }
    out += brackets[1];
}

template <class T>
void append_json(std::string& out, const T& value);

template <class Members>
void append_object(std::string& out, const Members& members) {
    append_list(out, "{}", members, [&out](const auto& member) {
        append_text(out, member.first);
        out += ':';
        append_json(out, member.second);
    });
}

template <class Elements>
void append_array(std::string& out, const Elements& elements) {
    // A vector<bool> has elements of a type of its own.
    using Element = typename Elements::value_type;
    append_list(out, "[]", elements, [&out](const Element& element) { append_json(out, element); });
}

template <class T>
void append_json(std::string& out, const T& value) {
    if constexpr (std::is_same_v<T, Json>) {
        out += value.text();
    } else if constexpr (std::is_same_v<T, bool>) {
        out += value ? "true" : "false";
    } else if constexpr (is_integer<T>) {
        out += std::to_string(value);
    } else if constexpr (std::is_floating_point_v<T>) {
        const auto number = static_cast<double>(value);
        out += std::isfinite(number) ? floating(number) : "null";
    } else if constexpr (std::is_same_v<T, std::nullptr_t>) {
        out += "null";
    } else if constexpr (has_to_json<T>::value) {
        out += static_cast<const Json&>(to_json(value)).text();
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
        append_text(out, value);
    } else if constexpr (is_optional<T>::value) {
        value ? append_json(out, *value) : append_json(out, nullptr);
    } else if constexpr (is_map<T>::value) {
        append_object(out, value);
    } else if constexpr (std::is_class_v<T>) {
        append_array(out, value);
    } else {
        static_assert(never<T>, "give this type a function `regent::Json to_json(const T&)`");
    }
}

} // namespace detail

template <class T, class>
Json::Json(const T& value) {
    detail::append_json(text_, value);
}

inline Json object(std::initializer_list<std::pair<std::string_view, Json>> members) {
    std::string out;
    detail::append_object(out, members);
    return Json::verbatim(std::move(out));
}

inline Json array(std::initializer_list<Json> elements) {
    std::string out;
    detail::append_array(out, elements);
    return Json::verbatim(std::move(out));
}

inline Json to_json(const Statistics& statistics) {
    const auto& [broken, informational, good, redirected, refused, failed] = statistics.answers;
    return object({{"requests", statistics.requests},
                   {"running", statistics.running},
                   {"bytes", statistics.bytes},
                   {"answers", object({{"1xx", informational},
                                       {"2xx", good},
                                       {"3xx", redirected},
                                       {"4xx", refused},
                                       {"5xx", failed},
                                       {"broken_off", broken}})}});
}

/* ---- rules ---- */

namespace detail {

inline size_t characters(std::string_view text) noexcept {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

template <class T>
std::string shown(const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
        return quoted(value);
    } else {
        return Json(value).text();
    }
}

/* Compares numbers of any two types as mathematics does. */
template <class A, class B>
bool less(A a, B b) noexcept {
    if constexpr (is_integer<A> && is_integer<B> && std::is_signed_v<A> != std::is_signed_v<B>) {
        if constexpr (std::is_signed_v<A>) return a < 0 || static_cast<std::make_unsigned_t<A>>(a) < b;
        else return b >= 0 && a < static_cast<std::make_unsigned_t<B>>(b);
    } else {
        return a < b;
    }
}

} // namespace detail

template <class Low, class High>
auto between(Low low, High high) {
    return [low, high](const auto& value) -> Wrong {
        if (!detail::less(value, low) && !detail::less(high, value)) return {};
        return "must be from " + detail::shown(low) + " to " + detail::shown(high);
    };
}

inline auto length(size_t least, size_t most) {
    return [least, most](const auto& value) -> Wrong {
        constexpr bool is_text = std::is_convertible_v<decltype(value), std::string_view>;
        size_t size = 0;
        if constexpr (is_text) size = detail::characters(value);
        else size = value.size();
        if (least <= size && size <= most) return {};
        return "must have " + std::to_string(least) + " to " + std::to_string(most) +
               (is_text ? " characters" : " elements");
    };
}

template <class... Allowed>
auto one_of(Allowed... allowed) {
    return [allowed...](const auto& value) -> Wrong {
        if (((value == allowed) || ...)) return {};
        std::string reason = "must be one of";
        ((reason += ' ' + detail::shown(allowed) + ','), ...);
        reason.pop_back();
        return reason;
    };
}

/* ---- text to values ---- */

namespace detail {

template <class T>
std::string expected_integer() {
    using Limits = std::numeric_limits<T>;
    if constexpr (sizeof(T) < sizeof(int64_t)) {
        return "an integer from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max());
    } else {
        return std::is_signed_v<T> ? "an integer" : "an integer that is not negative";
    }
}

} // namespace detail

template <>
struct FromText<std::string> {
    static std::optional<std::string> parse(std::string_view text) { return std::string(text); }
    static std::string expected() { return "text"; }
};

template <>
struct FromText<std::string_view> {
    static std::optional<std::string_view> parse(std::string_view text) { return text; }
    static std::string expected() { return "text"; }
};

template <>
struct FromText<bool> {
    static std::optional<bool> parse(std::string_view text) {
        if (text == "true") return true;
        if (text == "false") return false;
        return std::nullopt;
    }
    static std::string expected() { return "true or false"; }
};

template <class T>
struct FromText<T, std::enable_if_t<detail::is_integer<T>>> {
    static std::optional<T> parse(std::string_view text) {
        T value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
        return value;
    }
    static std::string expected() { return detail::expected_integer<T>(); }
};

template <class T>
struct FromText<T, std::enable_if_t<std::is_floating_point_v<T>>> {
    /* Not std::from_chars, which not every library has for these. */
    static std::optional<T> parse(std::string_view text) {
        std::istringstream in{std::string(text)};
        in.imbue(std::locale::classic());
        T value{};
        if (!(in >> std::noskipws >> value) || in.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
        return value;
    }
    static std::string expected() { return "a number"; }
};

namespace detail {

/* What a value is called in a reason: "query field `page`". */
struct Subject {
    std::string_view kind;
    std::string_view name;
    std::string text() const { return std::string(kind) + " " + quoted(name); }
};

[[noreturn]] inline void refuse(const std::string& reason) { throw Refused(400, reason); }

template <class T>
struct inner {
    using type = T;
};
template <class T>
struct inner<std::optional<T>> {
    using type = T;
};

template <class Rule, class T>
constexpr bool is_rule = std::is_invocable_r_v<Wrong, const Rule&, const T&>;

template <class Name, class T, class... Rules>
void enforce(const Name& name, const T& value, const Rules&... rules) {
    static_assert((is_rule<Rules, T> && ...), "after the name: a default of the value's type, if there is one, then rules");
    [[maybe_unused]] const auto hold = [&](const auto& rule) {
        if (const Wrong wrong = rule(value)) refuse(name() + " " + *wrong);
    };
    (hold(rules), ...);
}

/* The value that was found, once the rules hold; the default, or an error, where there is none. `name` is only called for
 * what is wrong. */
template <class T, class Name, class Value>
T settle(const Name& name, Value found) {
    if constexpr (is_optional<T>::value) {
        return found;
    } else {
        if (!found) refuse(name() + " is missing");
        return *std::move(found);
    }
}

template <class T, class Name, class Value, class First, class... Rules>
T settle(const Name& name, Value found, const First& first, const Rules&... rules) {
    using Inner = typename inner<T>::type;
    if constexpr (is_rule<First, Inner>) {
        if (found) enforce(name, *found, first, rules...);
        return settle<T>(name, std::move(found));
    } else {
        static_assert(std::is_convertible_v<const First&, T>, "the default is not of the type that is asked for");
        if (!found) return first;
        enforce(name, *found, rules...);
        return *std::move(found);
    }
}

template <class T>
std::optional<T> parse(const Subject& subject, std::optional<std::string_view> text) {
    if (!text) return std::nullopt;
    std::optional<T> value = FromText<T>::parse(*text);
    if (!value) refuse(subject.text() + " must be " + FromText<T>::expected() + ", not " + quoted(*text));
    return value;
}

template <class T, class... More>
T value_of(const Subject& subject, std::optional<std::string_view> text, const More&... more) {
    using Inner = typename inner<T>::type;
    return settle<T>([&] { return subject.text(); }, parse<Inner>(subject, text), more...);
}

} // namespace detail

/* ---- requests ---- */

inline std::string_view Request::method() const noexcept { return detail::view(api_->method(request_)); }
inline std::string_view Request::path() const noexcept { return detail::view(api_->path(request_)); }
inline std::string_view Request::target() const noexcept { return detail::view(api_->target(request_)); }
inline std::string_view Request::query_string() const noexcept { return detail::view(api_->query(request_)); }
inline std::string_view Request::variable(std::string_view name) const noexcept {
    return detail::view(api_->variable(request_, detail::to_c(name)));
}

template <class T, class... Rules>
T Request::path(std::string_view name, const Rules&... rules) const {
    const auto text = detail::present(api_->parameter(request_, detail::to_c(name)));
    // The module's mistake, not the client's.
    if (!text) throw std::logic_error("the route's path has no parameter " + detail::quoted(name));
    return detail::value_of<T>(detail::Subject{"path parameter", name}, text, rules...);
}

template <class T, class... More>
T Request::query(std::string_view name, const More&... more) const {
    const detail::Subject subject{"query field", name};
    const auto text = [&](size_t index) {
        return detail::present(api_->query_value(request_, detail::to_c(name), index));
    };
    if constexpr (detail::is_vector<T>::value) {
        T values;
        while (auto value = detail::parse<typename T::value_type>(subject, text(values.size())))
            values.push_back(*std::move(value));
        detail::enforce([&] { return subject.text(); }, values, more...);
        return values;
    } else {
        return detail::value_of<T>(subject, text(0), more...);
    }
}

template <class T, class... More>
T Request::header(std::string_view name, const More&... more) const {
    const auto text = detail::present(api_->header(request_, detail::to_c(name)));
    return detail::value_of<T>(detail::Subject{"header", name}, text, more...);
}

inline std::vector<std::pair<std::string_view, std::string_view>> Request::headers() const {
    std::vector<std::pair<std::string_view, std::string_view>> all;
    size_t cursor = 0;
    regent_string name, value;
    while (api_->next_header(request_, &cursor, &name, &value) == REGENT_OK)
        all.emplace_back(detail::view(name), detail::view(value));
    return all;
}

template <class T, class... More>
T Request::json(std::string_view pointer, const More&... more) const {
    return JsonView(*this, "").get<T>(pointer, more...);
}

inline Validation Request::validation() const noexcept { return Validation(*this); }

inline std::optional<uint64_t> Request::body_length() const noexcept {
    const uint64_t length = api_->body_length(request_);
    if (length == std::numeric_limits<uint64_t>::max()) return std::nullopt;
    return length;
}

inline size_t Request::read(void* buffer, size_t size) const {
    const ptrdiff_t count = api_->read_body(request_, buffer, size);
    if (count < 0) detail::check(static_cast<int>(count), "reading the body");
    return static_cast<size_t>(count);
}

inline std::string Request::body(size_t limit) const {
    std::string whole;
    char part[16384];
    while (const size_t count = read(part, sizeof part)) {
        if (count > limit - whole.size())
            throw Refused(413, "the body is larger than " + std::to_string(limit) + " bytes");
        whole.append(part, count);
    }
    return whole;
}

namespace detail {

inline const char* kind_name(uint32_t kind) noexcept {
    switch (kind) {
    case REGENT_JSON_NULL: return "null";
    case REGENT_JSON_BOOLEAN: return "true or false";
    case REGENT_JSON_INTEGER: return "an integer";
    case REGENT_JSON_NUMBER: return "a number";
    case REGENT_JSON_STRING: return "a string";
    case REGENT_JSON_ARRAY: return "an array";
    case REGENT_JSON_OBJECT: return "an object";
    default: return "something else";
    }
}

/* The value as a T that one JSON value holds; nothing if it is of another kind. */
template <class T>
std::optional<T> scalar(const regent_json& value) {
    if constexpr (std::is_same_v<T, bool>) {
        if (value.kind == REGENT_JSON_BOOLEAN) return value.boolean != 0;
    } else if constexpr (is_integer<T>) {
        using Limits = std::numeric_limits<T>;
        const bool fits = !less(value.integer, Limits::min()) && !less(Limits::max(), value.integer);
        if (value.kind == REGENT_JSON_INTEGER && fits) return static_cast<T>(value.integer);
    } else if constexpr (std::is_floating_point_v<T>) {
        if (value.kind == REGENT_JSON_INTEGER || value.kind == REGENT_JSON_NUMBER) return static_cast<T>(value.number);
    } else if (value.kind == REGENT_JSON_STRING) {
        return FromText<T>::parse(view(value.text));
    }
    return std::nullopt;
}

template <class T>
std::string expected_json() {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) return "a string";
    else return FromText<T>::expected();
}

/* What was sent instead, in words: the value itself where it is short. */
inline std::string described(const regent_json& value) {
    switch (value.kind) {
    case REGENT_JSON_INTEGER: return std::to_string(value.integer);
    case REGENT_JSON_NUMBER: return floating(value.number);
    case REGENT_JSON_BOOLEAN: return value.boolean ? "true" : "false";
    case REGENT_JSON_STRING: return "the string " + quoted(view(value.text));
    default: return kind_name(value.kind);
    }
}

} // namespace detail

inline std::string JsonView::name() const {
    return pointer_.empty() ? "the JSON body" : "JSON value " + detail::quoted(pointer_);
}

template <class T, class... More>
T JsonView::get(std::string_view pointer, const More&... more) const {
    const JsonView value(request_, pointer_ + std::string(pointer));
    return detail::settle<T>([&] { return value.name(); }, value.read<typename detail::inner<T>::type>(), more...);
}

/* null, which says that there is nothing, is like nothing. */
template <class T>
std::optional<T> JsonView::read() const {
    regent_json value{};
    value.size = sizeof value;
    const int status = request_.api_->json(request_.request_, detail::to_c(pointer_), &value);
    if (status == REGENT_BAD_REQUEST)
        detail::refuse(std::string(detail::view(request_.api_->reason(request_.request_))));
    if (status == REGENT_MISSING || (status == REGENT_OK && value.kind == REGENT_JSON_NULL)) return std::nullopt;
    detail::check(status, "reading the JSON value " + detail::quoted(pointer_));
    return convert<T>(value);
}

template <class T>
T JsonView::convert(const regent_json& value) const {
    if constexpr (detail::is_vector<T>::value) {
        return convert_array<T>(value);
    } else if constexpr (std::is_constructible_v<T, const JsonView&>) {
        if (value.kind != REGENT_JSON_OBJECT)
            detail::refuse(name() + " must be an object, not " + detail::described(value));
        return T(*this);
    } else {
        std::optional<T> converted = detail::scalar<T>(value);
        if (!converted)
            detail::refuse(name() + " must be " + detail::expected_json<T>() + ", not " + detail::described(value));
        return *std::move(converted);
    }
}

template <class Elements>
Elements JsonView::convert_array(const regent_json& value) const {
    if (value.kind != REGENT_JSON_ARRAY)
        detail::refuse(name() + " must be an array, not " + detail::described(value));
    Elements elements;
    for (size_t index = 0; index < value.count; ++index)
        elements.push_back(get<typename Elements::value_type>("/" + std::to_string(index)));
    return elements;
}

inline void Validation::check() const {
    if (reasons_.empty()) return;
    std::string all;
    for (const auto& reason : reasons_) all += (all.empty() ? "" : "; ") + reason;
    throw Refused(400, all);
}

template <class Read>
auto Validation::collect(Read read) -> decltype(read()) {
    try {
        return read();
    } catch (const Refused& refused) {
        if (refused.status() != 400) throw;
        // A body that is not JSON at all is wrong for each of its values in the same way.
        if (std::find(reasons_.begin(), reasons_.end(), refused.what()) == reasons_.end())
            reasons_.emplace_back(refused.what());
        return {};
    }
}

/* ---- answers ---- */

inline Stream& Stream::status(unsigned status) {
    detail::check(api_->set_status(request_, status), "status " + std::to_string(status));
    return *this;
}

inline Stream& Stream::header(std::string_view name, std::string_view value) {
    const int status = api_->set_header(request_, detail::to_c(name), detail::to_c(value));
    if (status != REGENT_OK) detail::check(status, "header " + detail::quoted(name));
    return *this;
}

inline Stream& Stream::add_header(std::string_view name, std::string_view value) {
    const int status = api_->add_header(request_, detail::to_c(name), detail::to_c(value));
    if (status != REGENT_OK) detail::check(status, "header " + detail::quoted(name));
    return *this;
}

inline Stream& Stream::write(std::string_view bytes) {
    detail::check(api_->write(request_, bytes.data(), bytes.size()), "writing");
    return *this;
}

inline Stream& Stream::flush() {
    detail::check(api_->flush(request_), "flushing");
    return *this;
}

inline Stream& Stream::trailer(std::string_view name, std::string_view value) {
    const int status = api_->add_trailer(request_, detail::to_c(name), detail::to_c(value));
    if (status != REGENT_OK) detail::check(status, "trailer " + detail::quoted(name));
    return *this;
}

/* ---- handlers ---- */

namespace detail {

inline void send(const Answer& answer, const regent_api* api, regent_request* request) {
    // From here on the host would send without knowing the end.
    constexpr size_t unbuffered = 32768;
    Stream stream(api, request);
    if (answer.status() != 200) stream.status(answer.status());
    for (const auto& [name, value] : answer.headers()) stream.add_header(name, value);
    if (answer.body().size() >= unbuffered) stream.header("Content-Length", std::to_string(answer.body().size()));
    if (!answer.body().empty()) stream.write(answer.body());
}

/* Answers for the exception that is being handled. */
inline int answer_exception(const App& app, const regent_api* api, regent_request* request) noexcept {
    const auto where = [&] {
        return std::string(view(api->method(request))) + " " + std::string(view(api->path(request))) + ": ";
    };
    try {
        throw;
    } catch (const Gone&) {
        return REGENT_GONE;
    } catch (const Refused& refused) {
        if (api->refuse(request, refused.status(), to_c(refused.what())) == REGENT_OK) return REGENT_OK;
        app.error(where() + "refused when the answer had begun: " + refused.what());
    } catch (const std::exception& error) {
        app.error(where() + error.what());
    } catch (...) {
        app.error(where() + "an exception that is no std::exception");
    }
    return REGENT_ERROR;
}

template <class F>
struct Endpoint {
    const App& app;
    const F handler;

    static int call(const regent_api* api, regent_request* raw, void* data) noexcept {
        const auto& self = *static_cast<const Endpoint*>(data);
        try {
            Request request(api, raw);
            self.answer(request, api);
            return REGENT_OK;
        } catch (...) {
            return answer_exception(self.app, api, raw);
        }
    }

    void answer(Request& request, const regent_api* api) const {
        if constexpr (std::is_invocable_v<const F&, Request&, Stream&>) {
            Stream stream(api, request.raw());
            handler(request, stream);
        } else {
            static_assert(std::is_invocable_v<const F&, Request&>,
                          "a handler takes a regent::Request&, or that and a regent::Stream&; it is not `mutable`, since many "
                          "threads call it at once");
            send(handler(request), api, request.raw());
        }
    }
};

} // namespace detail

/* ---- the module ---- */

template <class F>
void App::route(const char* method, const std::string& path, F handler, Promise promise) {
    using Endpoint = detail::Endpoint<F>;
    auto endpoint = std::unique_ptr<Endpoint>(new Endpoint{*this, std::move(handler)});
    const regent_route route{sizeof(regent_route),           method,          path.c_str(),
                             static_cast<uint32_t>(promise), &Endpoint::call, endpoint.get()};
    owned_.reserve(owned_.size() + 1);
    detail::check(api_->route(instance_, &route), "route " + std::string(method ? method : "*") + " " + path);
    owned_.emplace_back(endpoint.release(), [](void* owned) { delete static_cast<Endpoint*>(owned); });
}

template <class T, class... More>
T App::config(std::string_view name, const More&... more) const {
    const detail::Subject subject{"config", name};
    if constexpr (detail::is_vector<T>::value) {
        T values;
        for (const auto& [own, value] : configuration())
            if (own == name) values.push_back(*detail::parse<typename T::value_type>(subject, value));
        detail::enforce([&] { return subject.text(); }, values, more...);
        return values;
    } else {
        const auto text = detail::present(api_->configuration(instance_, detail::to_c(name)));
        return detail::value_of<T>(subject, text, more...);
    }
}

inline std::vector<std::pair<std::string, std::string>> App::configuration() const {
    std::vector<std::pair<std::string, std::string>> all;
    size_t cursor = 0;
    regent_string name, value;
    while (api_->next_configuration(instance_, &cursor, &name, &value) == REGENT_OK)
        all.emplace_back(detail::view(name), detail::view(value));
    return all;
}

template <class T, class... Arguments>
T& App::make(Arguments&&... arguments) {
    auto made = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T& reference = *made;
    owned_.emplace_back(nullptr, [](void* owned) { delete static_cast<T*>(owned); });
    owned_.back().reset(made.release());
    return reference;
}

template <class T>
void App::offer(const T& functions) {
    static_assert(std::is_standard_layout_v<T> && std::is_trivially_copyable_v<T>, "an interface is a struct that C has too");
    const T& kept = make<T>(functions);
    const auto name = std::string_view(T::interface.name);
    detail::check(api_->offer(instance_, detail::to_c(name), T::interface.version, &kept),
                  "interface " + detail::quoted(name));
}

template <class T>
const T* App::find() const {
    return static_cast<const T*>(api_->find(instance_, detail::to_c(T::interface.name), T::interface.version));
}

template <class T>
const T& App::require() const {
    if (const T* found = find<T>()) return *found;
    throw std::runtime_error("no module offers the interface " + detail::quoted(T::interface.name) + ", version " +
                             std::to_string(T::interface.version));
}

inline void App::log(Level level, std::string_view message) const noexcept {
    api_->log(instance_, static_cast<int>(level), detail::to_c(message));
}

inline Statistics App::statistics() const noexcept {
    regent_statistics raw{};
    raw.size = sizeof raw;
    api_->statistics(instance_, &raw);
    Statistics statistics{raw.requests, {}, raw.running, raw.bytes};
    std::copy(std::begin(raw.answers), std::end(raw.answers), statistics.answers.begin());
    return statistics;
}

namespace detail {

template <class... Needs>
constexpr const char* version_of(const char* version, const Needs&...) {
    return version;
}

template <class... Needs>
constexpr std::array<regent_dependency, sizeof...(Needs)> needs_of(const char*, const Needs&... needs) {
    return {needs...};
}

template <void (*setup)(App&)>
int init(const regent_api* api, regent_instance* instance, void** state) noexcept {
    try {
        auto app = std::make_unique<App>(api, instance);
        setup(*app);
        *state = app.release();
        return REGENT_OK;
    } catch (const std::exception& error) {
        api->fail(instance, to_c(error.what()));
    } catch (...) {
        api->fail(instance, to_c("an exception that is no std::exception"));
    }
    return REGENT_ERROR;
}

inline void cleanup(const regent_api*, regent_instance*, void* state) noexcept { delete static_cast<App*>(state); }

template <void (*setup)(App&), size_t count>
regent_module_info describe(const char* name, const char* version, const std::array<regent_dependency, count>& needs) {
    return {sizeof(regent_module_info), REGENT_ABI, 0, name, version, needs.data(), count, &init<setup>, &cleanup};
}

} // namespace detail
} // namespace regent

#endif /* REGENT_HPP */
