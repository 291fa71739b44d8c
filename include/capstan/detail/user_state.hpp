// user_state.hpp -- a program's own value in a checkpoint: any type that capstan/serialize.hpp can serialize.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capstan/buffer.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/serialize.hpp"

namespace capstan::detail {

/// Describes a type independently of the compiler: "(i64, f32, [str])". A type with its own Serializer is
/// "?".
template <class T>
struct StateType {
  static std::string name() {
    if constexpr (std::is_same_v<T, bool>) {
      return "bool";
    } else if constexpr (std::is_enum_v<T>) {
      return StateType<std::underlying_type_t<T>>::name();
    } else if constexpr (std::is_arithmetic_v<T>) {
      return (std::is_floating_point_v<T> ? "f"
              : std::is_signed_v<T>       ? "i"
                                          : "u") +
             std::to_string(8 * sizeof(T));
    } else if constexpr (std::is_aggregate_v<T>) {
      std::string text = "(";
      T value{};
      with_members(value, [&](const auto&... member) {
        ((text += StateType<std::remove_cvref_t<decltype(member)>>::name() + ", "), ...);
      });
      return text.substr(0, text.size() - 2) + ")";
    } else {
      return "?";
    }
  }
};
template <>
struct StateType<std::string> {
  static std::string name() { return "str"; }
};
template <class T>
struct StateType<std::vector<T>> {
  static std::string name() { return "[" + StateType<T>::name() + "]"; }
};
/// A buffer is stored as a vector.
template <class T>
struct StateType<Buffer<T>> : StateType<std::vector<T>> {};
template <class T, std::size_t N>
struct StateType<std::array<T, N>> {
  static std::string name() { return "[" + StateType<T>::name() + " x " + std::to_string(N) + "]"; }
};
template <class T>
struct StateType<std::optional<T>> {
  static std::string name() { return StateType<T>::name() + "?"; }
};
template <class A, class B>
struct StateType<std::pair<A, B>> {
  static std::string name() { return "(" + StateType<A>::name() + ", " + StateType<B>::name() + ")"; }
};
template <class... T>
struct StateType<std::tuple<T...>> {
  static std::string name() {
    std::string text;
    ((text += (text.empty() ? "" : ", ") + StateType<T>::name()), ...);
    return "(" + text + ")";
  }
};
template <class K, class V>
struct StateType<std::map<K, V>> {
  static std::string name() { return "{" + StateType<K>::name() + ": " + StateType<V>::name() + "}"; }
};
template <class K, class V>
struct StateType<std::unordered_map<K, V>> : StateType<std::map<K, V>> {};

/// Returns the JSON object {"capstan-value": "<the bytes in hexadecimal digits>", "type": type}.
CAPSTAN_API std::string to_user_state(const std::string& type, const std::vector<std::byte>& bytes);
/// Throws Error(failed_precondition) if the user state is the program's own JSON, or a value of another type.
CAPSTAN_API std::vector<std::byte> from_user_state(const std::string& user_state, const std::string& type);

/// A value to serialize, as opposed to JSON text.
template <class T>
concept UserValue = !std::is_convertible_v<const T&, std::string>;

}  // namespace capstan::detail
