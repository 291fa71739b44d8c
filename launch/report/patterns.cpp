// patterns.cpp -- scans characters by hand: std::regex recurses once for each character of a long log.
#include "launch/report/patterns.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace capstan::launch::report {
namespace {

constexpr std::size_t kHexTokenDigits = 32;     // 128 bits, the size of a job's secret
constexpr std::size_t kBase64TokenLength = 24;  // 128 bits with padding
constexpr std::size_t kBase64SlashLength = 40;  // of a secret key of AWS; shorter ones may be paths
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

std::size_t run_length(std::string_view text, std::string_view allowed) {
  return std::min(text.find_first_not_of(allowed), text.size());
}

bool ends_word(std::string_view text, std::size_t at) {
  return at >= text.size() || !is_word_character(text[at]);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& one : result) one = static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
  return result;
}

std::size_t ipv4_length(std::string_view text) {
  std::size_t end = 0;
  for (int part = 0; part < 4; ++part) {
    if (part > 0) {
      if (end >= text.size() || text[end] != '.') return 0;
      ++end;
    }
    const std::size_t digits = run_length(text.substr(end), kDigits);
    if (digits == 0 || digits > 3 || std::stoi(std::string(text.substr(end, digits))) > 255) return 0;
    end += digits;
  }
  const bool is_longer = end + 1 < text.size() && text[end] == '.' && is_word_character(text[end + 1]);
  if (!ends_word(text, end) || is_longer) return 0;
  return end;
}

/// Also matches an address with an IPv4 address at its end. Colons alone, as in "a::b", are not enough for a
/// name: all parts must be hexadecimal.
std::size_t ipv6_length(std::string_view text) {
  std::size_t end = run_length(text, "0123456789abcdefABCDEF:");
  const std::string_view run = text.substr(0, end);
  const std::size_t gap = run.find("::");
  const auto groups = split(run, ':');
  const bool is_group_list =
      std::all_of(groups.begin(), groups.end(), [](std::string_view group) { return group.size() <= 4; });
  if (!is_group_list || groups.size() > 9) return 0;
  const auto filled = static_cast<std::size_t>(
      std::count_if(groups.begin(), groups.end(), [](std::string_view group) { return !group.empty(); }));
  if (gap == std::string_view::npos ? filled != 8 || groups.size() != 8 : filled == 0 || filled > 7) return 0;
  if (end < text.size() && text[end] == '.') end += run_length(text.substr(end), "0123456789.");
  return ends_word(text, end) ? end : 0;
}

/// The text in quotes at `at`, which a backslash may precede, as in JSON within JSON; without a second quote,
/// the rest of the line. Returns begin = 0 if there are no quotes.
SecretPart quoted_value(std::string_view text, std::size_t at) {
  const std::size_t escapes = run_length(text.substr(at), "\\");
  const std::size_t begin = at + escapes + 1;
  if (begin > text.size() || (text[begin - 1] != '"' && text[begin - 1] != '\'')) return {};
  std::size_t end = begin;
  for (; end < text.size() && text[end] != '\n'; ++end) {
    if (text[end] != text[begin - 1]) continue;
    std::size_t before = 0;
    while (end - before > begin && text[end - before - 1] == '\\') ++before;
    if (before <= escapes) return {begin, end - before - begin};
  }
  return {begin, end - begin};
}

/// The word after "Bearer". A short one is a word of a sentence.
SecretPart bearer_token(std::string_view text, std::size_t name_end) {
  constexpr std::size_t kMinLength = 16;
  const std::size_t begin = name_end + run_length(text.substr(name_end), " \t");
  const std::size_t length = run_length(text.substr(begin), std::string(kNameCharacters) + "._~+/=");
  return length >= kMinLength ? SecretPart{begin, length} : SecretPart{};
}

}  // namespace

bool is_word_character(char character) { return std::isalnum(static_cast<unsigned char>(character)) != 0; }

std::size_t address_length(std::string_view text) {
  if (const std::size_t length = ipv4_length(text)) {
    const std::string_view address = text.substr(0, length);
    return address.starts_with("127.") || address == "0.0.0.0" ? 0 : length;
  }
  const std::size_t length = ipv6_length(text);
  const std::string_view address = text.substr(0, length);
  const bool is_unspecified = address.find_first_not_of("0:") == std::string_view::npos;
  return is_unspecified || address == "::1" ? 0 : length;
}

std::size_t hardware_address_length(std::string_view text) {
  for (const char separator : {':', '-'}) {
    const std::size_t end = run_length(text, std::string(kHexDigits) + separator);
    const auto groups = split(text.substr(0, end), separator);
    const auto all_have = [&](std::size_t size) {
      return std::all_of(groups.begin(), groups.end(),
                         [size](std::string_view group) { return group.size() == size; });
    };
    const bool is_pairs = groups.size() >= 6 && all_have(2);
    const bool is_guid = separator == ':' && groups.size() == 4 && all_have(4);
    if ((is_pairs || is_guid) && ends_word(text, end)) return end;
  }
  return 0;
}

std::size_t login_length(std::string_view text) {
  const std::size_t name = run_length(text, std::string(kNameCharacters) + "._%+");
  if (name == 0 || name + 1 >= text.size() || text[name] != '@') return 0;
  if (std::isalpha(static_cast<unsigned char>(text[name + 1])) == 0) return 0;
  if (run_length(text, kDigits) == name) return 0;
  std::size_t end = name + 1 + run_length(text.substr(name + 1), std::string(kNameCharacters) + ".");
  while (text[end - 1] == '.') --end;  // the end of a sentence
  return end;
}

std::size_t user_id_length(std::string_view before, std::string_view text) {
  constexpr std::array<std::string_view, 4> kBefore{"uid_", "uid=", "user-", "user@"};
  if (std::none_of(kBefore.begin(), kBefore.end(),
                   [&](std::string_view one) { return before.ends_with(one); }))
    return 0;
  const std::size_t digits = run_length(text, kDigits);
  return text.substr(0, digits) != "0" && ends_word(text, digits) ? digits : 0;
}

std::size_t hex_token_length(std::string_view text) {
  std::size_t end = run_length(text, std::string(kHexDigits) + "-");
  const auto digits = std::count_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end),
                                    [](char one) { return one != '-'; });
  return static_cast<std::size_t>(digits) >= kHexTokenDigits && ends_word(text, end) ? end : 0;
}

std::size_t url_login_length(std::string_view before, std::string_view text) {
  if (!before.ends_with("://")) return 0;
  const std::string_view url = text.substr(0, text.find_first_of(" \t\r\n\"'<>"));
  const std::size_t at = url.rfind('@');
  if (at == url.npos || url.substr(0, at).find(':') == url.npos) return 0;
  return at + 1 + run_length(url.substr(at + 1), std::string(kNameCharacters) + ".");
}

std::size_t base64_token_length(std::string_view text, bool may_have_slash) {
  std::size_t end = run_length(text, std::string(kNameCharacters) + "+=");
  if (may_have_slash) {
    const std::size_t with_slash = run_length(text, std::string(kNameCharacters) + "+=/");
    if (with_slash >= kBase64SlashLength) end = with_slash;
  }
  if (end < kBase64TokenLength) return 0;
  const std::string_view run = text.substr(0, end);
  const auto has = [&](int (*is)(int)) {
    return std::any_of(run.begin(), run.end(),
                       [is](char one) { return is(static_cast<unsigned char>(one)) != 0; });
  };
  return has(std::islower) && has(std::isupper) && has(std::isdigit) ? end : 0;
}

SecretPart assigned_secret(std::string_view text, bool is_option) {
  constexpr std::array<std::string_view, 10> kNames{"token",      "secret",       "passw",      "passphrase",
                                                    "credential", "api_key",      "access_key", "private_key",
                                                    "apikey",     "authorization"};
  const std::size_t name_end = run_length(text, kNameCharacters);
  std::string name = lower(text.substr(0, name_end));
  if (name == "bearer") return bearer_token(text, name_end);
  std::replace(name.begin(), name.end(), '-', '_');
  if (std::none_of(kNames.begin(), kNames.end(),
                   [&](std::string_view one) { return name.find(one) != std::string::npos; }))
    return {};
  std::size_t begin = name_end + run_length(text.substr(name_end), "\"'\\");
  const std::size_t between = run_length(text.substr(begin), " \t=:");
  // Without = or :, the name is a word of a sentence.
  if (!is_option && text.substr(begin, between).find_first_of("=:") == std::string_view::npos) return {};
  begin += between;
  if (const SecretPart quoted = quoted_value(text, begin); quoted.begin > 0) return quoted;
  // The value in "Authorization: Bearer VALUE" is the second word.
  const bool is_line = name.find("authorization") != std::string::npos;
  const std::size_t end =
      std::min(text.find_first_of(is_line ? "\r\n\"'," : " \t\r\n\"',;&}", begin), text.size());
  return {begin, end - begin};
}

bool is_secret_name(std::string_view name) {
  const std::string small = lower(name);
  // "session" alone is no secret: DESKTOP_SESSION is the name of a desktop.
  constexpr std::array<std::string_view, 10> kNames{"token", "secret", "passw",  "passphrase", "credential",
                                                    "key",   "auth",   "cookie", "jwt",        "session_id"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view one) { return small.find(one) != std::string::npos; });
}

}  // namespace capstan::launch::report
