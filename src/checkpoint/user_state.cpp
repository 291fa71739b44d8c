// user_state.cpp -- encodes a serialized value as JSON, and decodes it.
#include "capstan/detail/user_state.hpp"

#include <fmt/format.h>

#include <string_view>

#include "capstan/error.hpp"

namespace capstan::detail {
namespace {

constexpr std::string_view kStart = "{\"capstan-value\":\"";
constexpr std::string_view kMiddle = "\",\"type\":\"";
constexpr std::string_view kEnd = "\"}";

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string to_user_state(const std::string& type, const std::vector<std::byte>& bytes) {
  std::string text(kStart);
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text + std::string(kMiddle) + type + std::string(kEnd);
}

/// `user_state` has the format of the manifest's JSON library: members sorted by name, no spaces.
std::vector<std::byte> from_user_state(const std::string& user_state, const std::string& type) {
  const auto middle = user_state.find(kMiddle);
  const bool is_value =
      user_state.starts_with(kStart) && user_state.ends_with(kEnd) && middle != std::string::npos;
  if (!is_value) {
    throw Error(Code::failed_precondition,
                "user state of this checkpoint: expected a serialized value, found other JSON: " +
                    user_state.substr(0, 80));
  }
  const auto type_at = middle + kMiddle.size();
  const std::string found = user_state.substr(type_at, user_state.size() - kEnd.size() - type_at);
  if (found != type) {
    throw Error(
        Code::failed_precondition,
        fmt::format("user state of this checkpoint: found a value of type {}, expected {}", found, type));
  }
  const std::string_view digits = std::string_view(user_state).substr(kStart.size(), middle - kStart.size());
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit(digits[i]);
    const int low = i + 1 < digits.size() ? digit(digits[i + 1]) : -1;
    if (high < 0 || low < 0)
      throw Error(Code::data_loss, "user state of this checkpoint: the serialized value is damaged");
    bytes.push_back(static_cast<std::byte>(16 * high + low));
  }
  return bytes;
}

}  // namespace capstan::detail
