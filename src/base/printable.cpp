// printable.cpp -- escapes text, and validates UTF-8.
#include "base/printable.hpp"

#include <fmt/format.h>

namespace capstan {

std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) > 0x9f;
  const bool too_large = first == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxShown = 60;
  std::string shown = "\"";
  std::size_t at = 0;
  while (at < text.size() && at < kMaxShown) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = utf8_length(text.substr(at));
    if (byte == '\n' || byte == '\t') {
      shown += byte == '\n' ? "\\n" : "\\t";
    } else if (byte < 0x20 || byte == 0x7f || length == 0) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += text.substr(at, length);
    }
    at += length > 0 ? length : 1;
  }
  return shown + (at < text.size() ? "...\"" : "\"");
}

}  // namespace capstan
