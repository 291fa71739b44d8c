// triples.cpp -- reads three files into memory; until the graph is complete, names are views into their text.
#include "io/data/triples.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "base/printable.hpp"
#include "capstan/error.hpp"
#include "io/data/line_reader.hpp"
#include "io/file.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

/// Maps names to indexes in order of first occurrence. REQUIRES: the names' bytes outlive it.
class Numbering {
 public:
  std::int32_t number_of(std::string_view name) {
    const auto [it, is_new] = numbers_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return it->second;
  }
  std::size_t size() const noexcept { return names_.size(); }
  std::vector<std::string> names() const { return {names_.begin(), names_.end()}; }

 private:
  std::unordered_map<std::string_view, std::int32_t> numbers_;
  std::vector<std::string_view> names_;
};

/// One file, line by line.
class TripleFile {
 public:
  TripleFile(const fs::path& directory, const char* name)
      : name_(name), text_(read_whole_file(directory / name)) {
    if (text_.empty())
      throw Error(Code::invalid_argument, fmt::format("{} is empty", (directory / name).string()));
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (std::string_view(text_).starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  /// Returns false at the end of the file.
  bool next(std::array<std::string_view, 3>& fields) {
    const std::string_view rest = std::string_view(text_).substr(at_);
    if (rest.empty()) return false;
    ++line_;
    const auto newline = rest.find('\n');
    std::string_view line = rest.substr(0, newline);
    at_ += newline == std::string_view::npos ? rest.size() : newline + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    split(line, fields);
    return true;
  }

  std::string location() const { return fmt::format("{}:{}", name_, line_); }

 private:
  void split(std::string_view line, std::array<std::string_view, 3>& fields) const {
    if (line.find('\0') != std::string_view::npos) {
      throw Error(Code::invalid_argument, fmt::format("{}: found a NUL byte, expected text", location()));
    }
    std::size_t count = 0;
    for (std::size_t from = 0;;) {
      const auto tab = line.find('\t', from);
      if (count < fields.size()) fields[count] = line.substr(from, tab - from);
      ++count;
      if (tab == std::string_view::npos) break;
      from = tab + 1;
    }
    if (count != fields.size()) {
      throw Error(Code::invalid_argument,
                  fmt::format("{}: expected head<TAB>relation<TAB>tail, found {} field{}: {}", location(),
                              count, count == 1 ? "" : "s", printable(line)));
    }
    static constexpr std::array<const char*, 3> kNames{"head", "relation", "tail"};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].empty()) {
        throw Error(Code::invalid_argument,
                    fmt::format("{}: the {} is empty: {}", location(), kNames[i], printable(line)));
      }
    }
  }

  const char* name_;
  std::string text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
};

/// Counts entities and relations that are not in train, and records the location of the first of each.
class UnseenCounter {
 public:
  UnseenCounter(std::size_t entities_of_train, std::size_t relations_of_train)
      : entities_(entities_of_train), relations_(relations_of_train) {}

  void add(const GraphTriple& triple, const std::array<std::string_view, 3>& names, const TripleFile& file) {
    bool any = note(triple.head, entities_, "entity", names[0], file, unseen_.entity_example);
    any |= note(triple.tail, entities_, "entity", names[2], file, unseen_.entity_example);
    any |= note(triple.relation, relations_, "relation", names[1], file, unseen_.relation_example);
    if (any) ++unseen_.triples;
  }

  Unseen result(std::size_t all_entities, std::size_t all_relations) {
    unseen_.entities = all_entities - entities_;
    unseen_.relations = all_relations - relations_;
    return unseen_;
  }

 private:
  static bool note(std::int32_t number, std::size_t of_train, const char* kind, std::string_view name,
                   const TripleFile& file, std::string& example) {
    if (static_cast<std::size_t>(number) < of_train) return false;
    if (example.empty()) example = fmt::format("{}: {} {}", file.location(), kind, printable(name));
    return true;
  }

  std::size_t entities_;
  std::size_t relations_;
  Unseen unseen_;
};

void check_count(const Numbering& entities) {
  if (entities.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(Code::out_of_range, "the graph has more than 2^31 - 1 entities");
  }
}

}  // namespace

Graph read_graph(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    throw Error(Code::not_found,
                fmt::format("no directory {}, expected one with train.txt, valid.txt and test.txt",
                            directory.string()));
  }
  Graph graph;
  std::array<TripleFile, 3> files{TripleFile(directory, "train.txt"), TripleFile(directory, "valid.txt"),
                                  TripleFile(directory, "test.txt")};
  const std::array<std::vector<GraphTriple>*, 3> splits{&graph.train, &graph.valid, &graph.test};
  Numbering entities, relations;
  UnseenCounter unseen(0, 0);
  std::array<std::string_view, 3> names;
  for (std::size_t i = 0; i < files.size(); ++i) {
    while (files[i].next(names)) {
      const std::int32_t head = entities.number_of(names[0]);
      const GraphTriple triple{head, relations.number_of(names[1]), entities.number_of(names[2])};
      splits[i]->push_back(triple);
      if (i > 0) unseen.add(triple, names, files[i]);
    }
    if (i == 0) unseen = UnseenCounter(entities.size(), relations.size());
    check_count(entities);
  }
  graph.entities = entities.names();
  graph.relations = relations.names();
  graph.unseen = unseen.result(entities.size(), relations.size());
  return graph;
}

}  // namespace capstan::io
