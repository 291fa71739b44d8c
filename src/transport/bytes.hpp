// bytes.hpp -- a plain value as what a message or a put carries.
#pragma once

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

}  // namespace capstan::transport
