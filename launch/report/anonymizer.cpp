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

void Anonymizer::insert(Name name) {
  std::vector<Name>& same_start = names_[static_cast<unsigned char>(name.text.front())];
  const auto same = [&](const Name& one) { return one.text == name.text && one.is_series == name.is_series; };
  if (std::any_of(same_start.begin(), same_start.end(), same)) return;
  const auto longer = [&](const Name& one) { return one.text.size() >= name.text.size(); };
  same_start.insert(std::find_if_not(same_start.begin(), same_start.end(), longer), std::move(name));
}

void Anonymizer::add(Kind kind, std::string_view name) {
  std::string text = lower_case(name);
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  if (text.empty() || text == "/" || text == "root" || text.starts_with("localhost")) return;
  if (kind == Kind::secret && text.size() < kMinSecretLength) return;
  if (kind == Kind::host) return add_host(text);
  insert({std::move(text), kind, false});
}

void Anonymizer::add_host(std::string_view name) {
  if (name.find_first_of(kLetters) == name.npos || address_length(name) > 0) return;  // matched by patterns
  if (name.ends_with(".docker.internal")) return;  // aliases in /etc/hosts that every Docker host has
  const std::string_view host = name.substr(0, name.find('.'));
  const std::string_view domain = name.substr(std::min(host.size() + 1, name.size()));
  if (domain.find('.') != domain.npos) insert({std::string(domain), Kind::domain, false});
  const std::size_t common = host.find_last_not_of("0123456789") + 1;
  const bool is_series = common >= kMinSeriesLength && common < host.size();
  if (!host.empty())
    insert({std::string(host.substr(0, is_series ? common : host.size())), Kind::host, is_series});
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

Anonymizer::Match Anonymizer::known_name(std::string_view text, std::string_view lower,
                                         bool starts_word) const {
  for (const Name& name : names_[static_cast<unsigned char>(lower.front())]) {
    if (!lower.starts_with(name.text)) continue;
    const std::size_t size = name.text.size();
    const bool ends = size == text.size() || !is_word_character(text[size]);
    if (name.kind == Kind::secret) {
      const bool begins = starts_word || !is_word_character(text.front());
      const bool is_word = begins && (ends || !is_word_character(text[size - 1]));
      if (is_word || size >= kMinSecretInWord) return {name.kind, size};
      continue;
    }
    if (name.kind == Kind::home_path) {
      if (ends) return {name.kind, std::max(size, path_length(text))};
      continue;
    }
    if (!starts_word) continue;
    if (name.is_series) {
      const std::size_t suffix = series_suffix_length(text.substr(size));
      const std::size_t end = size + suffix;
      if (suffix > 0 && (end == text.size() || !is_word_character(text[end])))
        return {name.kind, end + domain_suffix_length(lower.substr(end))};
      continue;
    }
    if (ends)
      return {name.kind, size + (name.kind == Kind::host ? domain_suffix_length(lower.substr(size)) : 0)};
  }
  return {};
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
  if (const std::size_t length = is_value ? base64_token_length(rest) : 0) return {Kind::secret, length};
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
