// anonymizer.cpp -- one pass over the text; at each position, known names precede patterns.
#include "launch/report/anonymizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "launch/report/patterns.hpp"

namespace capstan::launch::report {
namespace {

constexpr std::size_t kMinSecretLength = 6;   // a shorter one would replace ordinary words
constexpr std::size_t kMinSecretInWord = 12;  // a shorter one would replace parts of ordinary words
constexpr std::size_t kMinSeriesLength = 2;   // "n1" does not make "n2" a host
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kHostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-";
/// Characters that end a path in a text.
constexpr std::string_view kAfterPath = " \t\r\n\"'`:,;()[]{}<>|=&";

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& one : result) one = static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
  return result;
}

/// Length of ".example.org" at the start of `text`.
std::size_t domain_suffix_length(std::string_view text) {
  std::size_t end = 0;
  while (end + 1 < text.size() && text[end] == '.' && is_word_character(text[end + 1]))
    end = std::min(text.find_first_not_of(kHostCharacters, end + 1), text.size());
  return end;
}

/// Length of the digits or of the bracketed lists that follow the common part of host names.
std::size_t series_suffix_length(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    if (std::isdigit(static_cast<unsigned char>(text[end])) != 0) {
      ++end;
    } else if (text[end] == '[') {
      const std::size_t close = text.find_first_not_of("0123456789,-", end + 1);
      if (close == std::string_view::npos || text[close] != ']') break;
      end = close + 1;
    } else {
      break;
    }
  }
  return end;
}

std::size_t path_length(std::string_view text) {
  return std::min(text.find_first_of(kAfterPath), text.size());
}

/// Length of a path in a home directory of any user.
std::size_t home_path_length(std::string_view text) {
  for (const std::string_view parent : {"/home/", "/Users/", "/users/"}) {
    if (text.starts_with(parent) && text.size() > parent.size() && is_word_character(text[parent.size()]))
      return path_length(text);
  }
  return 0;
}

}  // namespace

std::string_view Anonymizer::label(Kind kind) noexcept {
  constexpr std::array<std::string_view, kKinds> kLabels{
      "host", "domain", "user", "account", "home-path", "address", "hardware-address", "login", "secret"};
  return kLabels[static_cast<std::size_t>(kind)];
}

void Anonymizer::add(Kind kind, std::string_view name) {
  std::string text = lower_case(name);
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  if (text.empty() || text == "/" || text == "root" || text.starts_with("localhost")) return;
  if (kind == Kind::secret && text.size() < kMinSecretLength) return;
  if (kind == Kind::host) return add_host(text);
  Names& names = kind == Kind::home_path ? home_paths_ : kind == Kind::secret ? secrets_ : words_;
  names.try_emplace(std::move(text), kind);
}

void Anonymizer::add_host(std::string_view name) {
  if (name.find_first_of(kLetters) == name.npos || address_length(name) > 0) return;  // matched by patterns
  if (name.ends_with(".docker.internal")) return;  // aliases in /etc/hosts that every Docker host has
  const std::string_view host = name.substr(0, name.find('.'));
  const std::string_view domain = name.substr(std::min(host.size() + 1, name.size()));
  if (domain.find('.') != domain.npos) words_.try_emplace(std::string(domain), Kind::domain);
  const std::size_t common = host.find_last_not_of("0123456789") + 1;
  if (common >= kMinSeriesLength && common < host.size()) {
    host_series_.try_emplace(std::string(host.substr(0, common)), Kind::host);
  } else if (!host.empty()) {
    words_.try_emplace(std::string(host), Kind::host);
  }
}

std::string Anonymizer::replace(Kind kind, std::string_view text) {
  auto& numbers = placeholders_[static_cast<std::size_t>(kind)];
  std::string key = lower_case(text);
  // "node1" and "node1.example.org" are one host.
  if (kind == Kind::host) key = key.substr(0, key.find('.'));
  const auto [entry, added] = numbers.try_emplace(std::move(key), numbers.size() + 1);
  return fmt::format("{}-{}", label(kind), entry->second);
}

std::size_t Anonymizer::replaced(Kind kind) const {
  return placeholders_[static_cast<std::size_t>(kind)].size();
}

template <class LengthOf>
Anonymizer::Match Anonymizer::longest(const Names& names, std::string_view lower, LengthOf length_of) {
  for (std::string_view start = lower; !start.empty();) {
    // The last name that is not greater than `start` starts with all names that `start` starts with.
    auto at = names.upper_bound(start);
    if (at == names.begin()) break;
    const auto& [name, kind] = *--at;
    const auto differ = std::mismatch(name.begin(), name.end(), start.begin(), start.end()).first;
    const auto common = static_cast<std::size_t>(differ - name.begin());
    const std::size_t length = common == name.size() ? length_of(kind, common) : 0;
    if (length > 0) return {kind, length};
    start = start.substr(0, common == name.size() ? common - 1 : common);
  }
  return {};
}

Anonymizer::Match Anonymizer::known_name(std::string_view text, std::string_view lower,
                                         bool starts_word) const {
  const auto ends_word = [&](std::size_t size) {
    return size == text.size() || !is_word_character(text[size]);
  };
  const auto longer = [](const Match& a, const Match& b) { return b.length > a.length ? b : a; };
  const Match home_path = longest(home_paths_, lower, [&](Kind, std::size_t size) {
    return ends_word(size) ? std::max(size, path_length(text)) : 0;
  });
  const Match secret = longest(secrets_, lower, [&](Kind, std::size_t size) {
    const bool begins = starts_word || !is_word_character(text.front());
    const bool ends = ends_word(size) || !is_word_character(text[size - 1]);
    return (begins && ends) || size >= kMinSecretInWord ? size : 0;
  });
  if (!starts_word) return longer(home_path, secret);
  const Match host = longest(host_series_, lower, [&](Kind, std::size_t size) {
    const std::size_t end = size + series_suffix_length(text.substr(size));
    return end > size && ends_word(end) ? end + domain_suffix_length(lower.substr(end)) : 0;
  });
  const Match word = longest(words_, lower, [&](Kind kind, std::size_t size) {
    if (!ends_word(size)) return std::size_t{0};
    return size + (kind == Kind::host ? domain_suffix_length(lower.substr(size)) : 0);
  });
  return longer(longer(home_path, secret), longer(host, word));
}

Anonymizer::Match Anonymizer::match_at(std::string_view text, std::size_t at, bool is_value) const {
  const std::string_view rest = text.substr(at);
  if (rest.front() == '/') {
    if (const std::size_t length = home_path_length(rest)) return {Kind::home_path, length};
  }
  if (at > 0 && is_word_character(text[at - 1])) return {};
  if (const std::size_t length = user_id_length(text.substr(0, at), rest)) return {Kind::user, length};
  if (const std::size_t length = login_length(rest)) return {Kind::login, length};
  if (const std::size_t length = hardware_address_length(rest)) return {Kind::hardware_address, length};
  const bool continues_number = at >= 2 && text[at - 1] == '.' && is_word_character(text[at - 2]);
  if (const std::size_t length = continues_number ? 0 : address_length(rest)) return {Kind::address, length};
  if (const std::size_t length = hex_token_length(rest)) return {Kind::secret, length};
  if (const std::size_t length = is_value ? base64_token_length(rest, at == 0 || text[at - 1] != '/') : 0)
    return {Kind::secret, length};
  return {};
}

std::string Anonymizer::anonymize(std::string_view text) { return anonymize(text, false); }
std::string Anonymizer::anonymize_value(std::string_view text) { return anonymize(text, true); }

std::string Anonymizer::anonymize(std::string_view text, bool is_value) {
  const std::string lower = lower_case(text);
  std::string result;
  result.reserve(text.size());
  std::size_t secret_at = 0, secret_end = 0;  // the next value of a name such as "password"
  for (std::size_t at = 0; at < text.size();) {
    const bool starts_word = at == 0 || !is_word_character(text[at - 1]);
    if (starts_word && at >= secret_end) {
      const bool is_option = at >= 2 && text.substr(at - 2, 2) == "--";
      const SecretPart secret = assigned_secret(text.substr(at), is_option);
      secret_at = at + secret.begin;
      secret_end = secret_at + secret.length;
    }
    Match match;
    if (at >= secret_at && at < secret_end) {
      match = {Kind::secret, secret_end - at};
    } else if (const std::size_t length = url_login_length(text.substr(0, at), text.substr(at))) {
      match = {Kind::login, length};  // before names: that of the user would leave the password
    } else {
      match = known_name(text.substr(at), std::string_view(lower).substr(at), starts_word);
      if (match.length == 0) match = match_at(text, at, is_value);
    }
    if (match.length == 0) {
      result += text[at++];
      continue;
    }
    result += replace(match.kind, text.substr(at, match.length));
    at += match.length;
  }
  return result;
}

}  // namespace capstan::launch::report
