#include "regent.hpp"

REGENT_MODULE("hello", "1.0") {
    const auto greeting = app.config("greeting", "Hello");

    app.get("/hello/{name}", [greeting](regent::Request& request) {
        return greeting + " " + request.path("name") + "\n";
    });

    app.get("/add", [](regent::Request& request) {
        const auto a = request.query<int>("a", regent::between(-1000, 1000));
        const auto b = request.query<int>("b", 0, regent::between(-1000, 1000));
        return regent::object({{"a", a}, {"b", b}, {"sum", a + b}});
    });
}
