// bytes.hpp -- converts trivially copyable values to and from the bytes of a message or a put.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "transport/fabric.hpp"

namespace capstan::transport {

/// Returns a view of the bytes of `value`, which must outlive the view.
template <class T>
Bytes as_bytes(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>, "T must be trivially copyable");
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

/// Returns the header of `message`, or nullopt if its size is not sizeof(T); count_malformed() counts such
/// messages. Every handler reads its header with this function, before anything else.
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
