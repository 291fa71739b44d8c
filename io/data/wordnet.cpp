// wordnet.cpp -- parses WordNet's data files (wndb(5WN)) into synsets and pointers between them.
#include "io/data/wordnet.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "capstan/error.hpp"
#include "io/data/pair_split.hpp"
#include "io/file.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;

struct PartOfSpeech {
  const char* file;
  char letter;
};
constexpr std::array<PartOfSpeech, 4> kFiles{
    {{"data.noun", 'n'}, {"data.verb", 'v'}, {"data.adj", 'a'}, {"data.adv", 'r'}}};

struct Pointer {
  std::string_view symbol;
  std::string_view name;
};
// wninput(5WN), "Pointers". `\` links words, never synsets, and has another meaning for adverbs; it is listed
// so that it is not an unknown symbol.
constexpr std::array<Pointer, 26> kPointers{{{"!", "antonym"},
                                             {"@", "hypernym"},
                                             {"@i", "instance_hypernym"},
                                             {"~", "hyponym"},
                                             {"~i", "instance_hyponym"},
                                             {"#m", "member_holonym"},
                                             {"#s", "substance_holonym"},
                                             {"#p", "part_holonym"},
                                             {"%m", "member_meronym"},
                                             {"%s", "substance_meronym"},
                                             {"%p", "part_meronym"},
                                             {"=", "attribute"},
                                             {"+", "derivationally_related_form"},
                                             {";c", "domain_of_synset_topic"},
                                             {"-c", "member_of_this_domain_topic"},
                                             {";r", "domain_of_synset_region"},
                                             {"-r", "member_of_this_domain_region"},
                                             {";u", "domain_of_synset_usage"},
                                             {"-u", "member_of_this_domain_usage"},
                                             {"*", "entailment"},
                                             {">", "cause"},
                                             {"^", "also_see"},
                                             {"$", "verb_group"},
                                             {"&", "similar_to"},
                                             {"<", "participle_of_verb"},
                                             {"\\", "pertainym"}}};

/// Maps 's', an adjective satellite in data.adj, to 'a'.
char plain_letter(char letter) { return letter == 's' ? 'a' : letter; }

/// Unique key of a synset: part of speech and byte offset in its file.
std::uint64_t synset_key(char letter, std::uint64_t offset) {
  return offset << 8 | static_cast<unsigned char>(plain_letter(letter));
}

struct Edge {
  std::int32_t head;
  std::string_view symbol;
  std::uint64_t target;
  std::size_t file;
  std::size_t line;
};

/// The space-separated fields of one line.
class Fields {
 public:
  Fields(std::string_view line, const char* file, std::size_t number)
      : rest_(line), file_(file), number_(number) {}

  std::string_view word(std::string_view what) {
    const auto space = rest_.find(' ');
    if (space == 0 || space == std::string_view::npos) throw fault(fmt::format("no {}", what));
    const auto field = rest_.substr(0, space);
    rest_.remove_prefix(space + 1);
    return field;
  }

  std::uint64_t number(std::string_view what, int base) {
    const auto field = word(what);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, base);
    if (error != std::errc{} || end != field.data() + field.size()) {
      throw fault(fmt::format("found \"{}\", expected a {}", field, what));
    }
    return value;
  }

  char letter() {
    const auto field = word("part of speech");
    if (field.size() != 1 || std::string_view("nvars").find(field[0]) == std::string_view::npos) {
      throw fault(fmt::format("found \"{}\", expected a part of speech", field));
    }
    return field[0];
  }

  Error fault(std::string_view text) const {
    return Error(Code::data_loss, fmt::format("{}:{}: invalid WordNet synset: {}", file_, number_, text));
  }

 private:
  std::string_view rest_;
  const char* file_;
  std::size_t number_;
};

class Reader {
 public:
  /// REQUIRES: `text` outlives the Reader.
  void add_file(std::size_t file, std::string_view text) {
    std::size_t number = 0;
    const auto synsets_before = names_.size();
    for (std::size_t at = 0; at < text.size();) {
      ++number;
      const auto newline = text.find('\n', at);
      if (newline == std::string_view::npos) {
        throw Fields({}, kFiles[file].file, number).fault("the file ends within the line");
      }
      const auto line = text.substr(at, newline - at);
      if (!line.starts_with("  ")) add_synset(file, number, at, line);  // the license is indented
      at = newline + 1;
    }
    if (names_.size() == synsets_before) {
      throw Error(Code::data_loss, fmt::format("{} has no synsets", kFiles[file].file));
    }
  }

  /// Call once, after the last file. REQUIRES: `triples` is empty.
  Graph take_graph(std::vector<GraphTriple>& triples) {
    Graph graph;
    std::unordered_map<std::string_view, std::int32_t> relations;
    triples.reserve(edges_.size());
    for (const Edge& edge : edges_) {
      const Fields source({}, kFiles[edge.file].file, edge.line);
      const auto target = numbers_.find(edge.target);
      if (target == numbers_.end())
        throw source.fault(fmt::format("a pointer to byte {}, expected a synset there", edge.target >> 8));
      const auto [relation, is_new] =
          relations.try_emplace(edge.symbol, static_cast<std::int32_t>(graph.relations.size()));
      if (is_new) graph.relations.push_back(relation_name(edge.symbol, source));
      triples.push_back({edge.head, relation->second, target->second});
    }
    graph.entities = std::move(names_);
    return graph;
  }

 private:
  void add_synset(std::size_t file, std::size_t number, std::size_t at, std::string_view line) {
    Fields fields(line, kFiles[file].file, number);
    if (fields.number("byte offset", 10) != at)
      throw fields.fault(fmt::format("its byte offset differs, expected {}", at));
    fields.word("lexicographer file");
    if (plain_letter(fields.letter()) != kFiles[file].letter)
      throw fields.fault("its part of speech differs from that of the file");
    const auto words = fields.number("word count", 16);
    if (words == 0) throw fields.fault("its word count is 0");
    const auto first_word = fields.word("word");
    fields.word("lexical id");
    for (std::uint64_t i = 1; i < words; ++i) {
      fields.word("word");
      fields.word("lexical id");
    }
    const auto entity = static_cast<std::int32_t>(names_.size());
    names_.push_back(name_synset(first_word, kFiles[file].letter));
    numbers_.emplace(synset_key(kFiles[file].letter, at), entity);

    const auto pointers = fields.number("pointer count", 10);
    for (std::uint64_t i = 0; i < pointers; ++i) {
      const auto symbol = fields.word("pointer symbol");
      const auto offset = fields.number("pointer offset", 10);
      const char letter = fields.letter();
      const bool synset_to_synset = fields.word("source and target words") == "0000";
      if (synset_to_synset) edges_.push_back({entity, symbol, synset_key(letter, offset), file, number});
    }
  }

  /// Returns a name such as "whale.n.01". Strips the syntactic marker of adjectives, as in "galore(ip)".
  std::string name_synset(std::string_view word, char letter) {
    const auto plain = word.substr(0, word.find('('));
    const std::string stem = fmt::format("{}.{}", plain, letter);
    return fmt::format("{}.{:02}", stem, ++senses_[stem]);
  }

  static std::string relation_name(std::string_view symbol, const Fields& source) {
    for (const Pointer& pointer : kPointers) {
      if (pointer.symbol == symbol) return std::string(pointer.name);
    }
    throw source.fault(fmt::format("unknown pointer symbol \"{}\"", symbol));
  }

  std::vector<std::string> names_;
  std::unordered_map<std::uint64_t, std::int32_t> numbers_;  // entity indexes by synset key
  std::unordered_map<std::string, int> senses_;
  std::vector<Edge> edges_;
};

std::string read_data_file(const fs::path& file) {
  try {
    return read_whole_file(file);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    throw Error(Code::not_found,
                fmt::format("no WordNet in {}: {} is missing; install the Debian package wordnet-base, or "
                            "pass --data DIR",
                            file.parent_path().string(), file.filename().string()));
  }
}

}  // namespace

Graph read_wordnet(const fs::path& dict, const WordnetSplit& split) {
  check_shares(split.valid, split.test);
  std::array<std::string, kFiles.size()> texts;
  Reader reader;
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    texts[i] = read_data_file(dict / kFiles[i].file);
    reader.add_file(i, texts[i]);
  }
  std::vector<GraphTriple> triples;
  Graph graph = reader.take_graph(triples);
  split_by_pair(triples, {split.valid, split.test, split.seed}, graph);
  return graph;
}

}  // namespace capstan::io
