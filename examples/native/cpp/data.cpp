// What benchmarks ask for: /data/N is N periods, /sleep a request that waits and works, /stats the figures of this service.
#include "regent.hpp"

#include <chrono>
#include <thread>

REGENT_MODULE("data", "1.0") {
    const auto largest = app.config<size_t>("largest", 1 << 20);
    // A promise of microseconds, which can only be given for short answers. The same for /data and /stats, since the server
    // and the engine each have figures of their own.
    const auto promise = largest <= (1 << 16) ? regent::never_blocks : regent::Promise::nothing;

    app.get("/data/{count}", [largest](regent::Request& request) {
        return std::string(request.path<size_t>("count", regent::between(0, largest)), '.');
    }, promise);

    // Each iteration counts to `work`, sleeps for `sleep` milliseconds, and says so in `output` lines.
    app.get("/sleep", [](regent::Request& request) {
        const auto sleep = request.query<int>("sleep", 0, regent::between(0, 60'000));
        const auto work = request.query<int>("work", 0, regent::between(0, 100'000'000));
        const auto output = request.query<int>("output", 1, regent::between(0, 1'000));
        const auto iterations = request.query<int>("iterations", 1, regent::between(0, 1'000));
        const auto line = "slept " + std::to_string(sleep) + " ms, looped " + std::to_string(work) + " times, and printed\n";
        std::string answer;
        for (int iteration = 0; iteration < iterations; ++iteration) {
            // volatile, or the compiler would leave the loop out.
            [[maybe_unused]] volatile int counted = 0;
            for (int loop = 0; loop < work; ++loop) counted = loop;
            std::this_thread::sleep_for(std::chrono::milliseconds(sleep));
            for (int printed = 0; printed < output; ++printed) answer += line;
        }
        return answer;
    });

    app.get("/stats", [&app](auto&) { return regent::json(app.statistics()); }, promise);
}
