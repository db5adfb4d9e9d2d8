// Notes over HTTP: typed parameters, JSON in and out, and everything that is wrong with a request told at once.
#include "regent.hpp"

#include <map>
#include <mutex>
#include <shared_mutex>

namespace {

struct Note {
    int id;
    std::string title;
    int priority;
    std::vector<std::string> tags;
};

regent::Json to_json(const Note& note) {
    return regent::object(
        {{"id", note.id}, {"title", note.title}, {"priority", note.priority}, {"tags", note.tags}});
}

/* What the body describes, without an id. */
Note read_note(regent::Request& request) {
    auto valid = request.validation();
    const std::vector<std::string> no_tags;
    Note note{0, valid.json<std::string>("/title", regent::length(1, 80)),
              valid.json<int>("/priority", 0, regent::between(0, 9)),
              valid.json<std::vector<std::string>>("/tags", no_tags, regent::length(0, 5))};
    valid.check();
    return note;
}

regent::Refused missing(int id) { return {404, "there is no note " + std::to_string(id)}; }

/* In memory; used by many threads at once. */
class Notes {
public:
    explicit Notes(size_t most) : most_(most) {}

    Note add(Note note) {
        const std::unique_lock lock(mutex_);
        if (notes_.size() == most_) throw regent::Refused(507, "there is no room for another note");
        note.id = ++last_id_;
        return notes_[note.id] = std::move(note);
    }

    Note replace(int id, Note note) {
        const std::unique_lock lock(mutex_);
        const auto found = notes_.find(id);
        if (found == notes_.end()) throw missing(id);
        note.id = id;
        return found->second = std::move(note);
    }

    void remove(int id) {
        const std::unique_lock lock(mutex_);
        if (notes_.erase(id) == 0) throw missing(id);
    }

    Note get(int id) const {
        const std::shared_lock lock(mutex_);
        const auto found = notes_.find(id);
        if (found == notes_.end()) throw missing(id);
        return found->second;
    }

    std::vector<Note> list(int after, size_t limit, int least_priority) const {
        const std::shared_lock lock(mutex_);
        std::vector<Note> page;
        for (auto note = notes_.upper_bound(after); note != notes_.end() && page.size() < limit; ++note)
            if (note->second.priority >= least_priority) page.push_back(note->second);
        return page;
    }

private:
    const size_t most_;
    mutable std::shared_mutex mutex_;
    std::map<int, Note> notes_;
    int last_id_ = 0;
};

} // namespace

REGENT_MODULE("notes", "1.0") {
    auto& notes = app.make<Notes>(app.config<size_t>("most", 1000));

    app.get("/notes", [&notes](regent::Request& request) {
        auto valid = request.validation();
        const auto after = valid.query<int>("after", 0);
        const auto limit = valid.query<size_t>("limit", 20, regent::between(1, 100));
        const auto least_priority = valid.query<int>("priority", 0, regent::between(0, 9));
        valid.check();
        return regent::json(notes.list(after, limit, least_priority));
    });

    app.post("/notes", [&notes](regent::Request& request) {
        const Note note = notes.add(read_note(request));
        return regent::json(note).status(201).header("Location", "/notes/" + std::to_string(note.id));
    });

    app.get("/notes/{id}", [&notes](regent::Request& request) {
        return regent::json(notes.get(request.path<int>("id")));
    });

    app.put("/notes/{id}", [&notes](regent::Request& request) {
        return regent::json(notes.replace(request.path<int>("id"), read_note(request)));
    });

    app.del("/notes/{id}", [&notes](regent::Request& request) {
        notes.remove(request.path<int>("id"));
        return regent::empty();
    });
}
