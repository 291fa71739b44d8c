// anonymizer.hpp -- replaces names, addresses and secrets in a text by placeholders such as host-1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace capstan::launch::report {

/// What a placeholder stands for.
enum class Kind : std::uint8_t {
  host,
  domain,
  user,
  account,
  home_path,
  address,
  hardware_address,
  login,
  secret
};
inline constexpr std::size_t kKinds = 9;

/// Equal texts get equal placeholders, so that an engineer can still tell hosts apart. Letter case is
/// ignored. One thread at a time.
class Anonymizer {
 public:
  /// Adds a known name. A host is also replaced with its domain, and so are hosts whose names differ only in
  /// the number at the end: with "node7" also "node12" and "node[1-4]". Its domain becomes a known name if it
  /// contains a dot. A home_path is the directory, also within a word, as after the "-L" of a compiler. A
  /// secret of 12 characters or more is also replaced within a word. Ignores empty names, "root",
  /// "localhost", Docker's aliases such as "host.docker.internal", and hosts that are addresses or numbers.
  void add(Kind kind, std::string_view name);

  /// Replaces known names, and texts that patterns.hpp recognizes.
  std::string anonymize(std::string_view text);
  /// Like anonymize(), and replaces words that look like keys. They may be symbols in logs, but not in the
  /// value of a variable.
  std::string anonymize_value(std::string_view text);
  /// Replaces a complete text.
  std::string replace(Kind kind, std::string_view text);

  /// Number of distinct texts of this kind that were replaced.
  std::size_t replaced(Kind kind) const;

  /// "host" for "host-1"
  static std::string_view label(Kind kind) noexcept;

 private:
  struct Match {
    Kind kind = Kind::host;
    std::size_t length = 0;  ///< 0: no match
  };
  using Names = std::map<std::string, Kind, std::less<>>;  // in lower case

  std::string anonymize(std::string_view text, bool is_value);
  Match match_at(std::string_view text, std::size_t at, bool is_value) const;
  /// Returns the longest of `names` at the start of `lower` for which length_of(kind, size) is not 0.
  template <class LengthOf>
  static Match longest(const Names& names, std::string_view lower, LengthOf length_of);
  Match known_name(std::string_view text, std::string_view lower, bool starts_word) const;
  void add_host(std::string_view name);

  Names words_;        // hosts, domains, users, accounts: match complete words only
  Names host_series_;  // digits or a list in brackets must follow
  Names home_paths_;
  Names secrets_;
  std::array<std::map<std::string, std::size_t>, kKinds> placeholders_;  // text in lower case -> number
};

}  // namespace capstan::launch::report
