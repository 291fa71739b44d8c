// bytes.hpp -- plain values to and from the bytes that a message or a put carries.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "transport/fabric.hpp"

namespace capstan::transport {

/// The bytes of `value` itself, which must live as long as they are used.
template <class T>
Bytes as_bytes(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>, "its bytes are its value");
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

/// The header of `message`. Empty, and counted by count_malformed, when its size is not that of a T. Every
/// handler reads its header with this, before anything else.
template <class T>
[[nodiscard]] std::optional<T> read_header(const Message& message) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  if (message.header.size() != sizeof(T)) {
    count_malformed(message, sizeof(T));
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, message.header.data(), sizeof value);
  return value;
}

}  // namespace capstan::transport
