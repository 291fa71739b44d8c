// remote_value.hpp -- RemoteValue: the future result of a scheduled function, fetched or passed on.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/detail/remote_function.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

namespace coordinator {
struct Result;
}

namespace detail {

/// Waits for a closure's result. Throws the closure's Error, or Error(cancelled).
CAPSTAN_API std::vector<std::byte> fetch_bytes(const coordinator::Result& result);
CAPSTAN_API bool is_ready(const coordinator::Result& result);
/// Waits for at most `timeout`. Returns whether fetch_bytes will not block.
CAPSTAN_API bool wait_for(const coordinator::Result& result, std::chrono::milliseconds timeout);

/// An argument, or a part of one, that is another closure's result: its bytes are inserted at `at`.
struct ArgumentInput {
  std::size_t at = 0;
  std::shared_ptr<const coordinator::Result> result;
  /// Converts from the result's type to the parameter's; null when the types are the same.
  std::vector<std::byte> (*convert)(std::span<const std::byte>) = nullptr;
};

/// Worker objects that serialized bytes refer to; each stays alive on the workers while a pointer to it
/// exists.
using WorkerObjectRefs = std::vector<std::shared_ptr<const void>>;

struct PackedArguments {
  std::vector<std::byte> bytes;
  WorkerObjectRefs named = {};
  std::vector<ArgumentInput> inputs = {};  // in the order of `at`
};

}  // namespace detail

/// The future result of a scheduled function. Copies share one result. Passed as an argument to a later
/// function, it stands for its value: only that function waits for it.
template <class T>
class RemoteValue {
 public:
  explicit RemoteValue(std::shared_ptr<const coordinator::Result> result) : result_(std::move(result)) {
    if constexpr (!std::is_void_v<T>) detail::require_serializable<T>();
  }

  /// Blocks until the function has ended. Throws the function's error with its code, or Error(cancelled) if
  /// an earlier error cancelled the function: schedule it again. A result survives the worker that computed
  /// it.
  T fetch() const {
    const std::vector<std::byte> bytes = detail::fetch_bytes(*result_);
    if constexpr (std::is_void_v<T>) {
      return;
    } else if constexpr (Serializable<T>) {
      return from_bytes<T>(bytes);
    } else {
      throw Error(Code::internal, "the constructor does not compile");
    }
  }
  /// Returns true once the function has ended, with or without an error: fetch() will not block.
  bool ready() const { return detail::is_ready(*result_); }

  /// Internal: for the layers above, not for programs.
  const std::shared_ptr<const coordinator::Result>& result() const noexcept { return result_; }

 private:
  std::shared_ptr<const coordinator::Result> result_;
};

namespace detail {

/// True for a RemoteValue, and for a vector, pair, tuple or map that contains one.
template <class T>
inline constexpr bool kHasRemote = false;
template <class T>
inline constexpr bool kHasRemote<RemoteValue<T>> = true;
template <class T>
inline constexpr bool kHasRemote<std::vector<T>> = kHasRemote<T>;
template <class A, class B>
inline constexpr bool kHasRemote<std::pair<A, B>> = kHasRemote<A> || kHasRemote<B>;
template <class... T>
inline constexpr bool kHasRemote<std::tuple<T...>> = (kHasRemote<T> || ...);
template <class K, class V>
inline constexpr bool kHasRemote<std::map<K, V>> = kHasRemote<V>;

template <class From, class To>
std::vector<std::byte> convert_bytes(std::span<const std::byte> bytes) {
  return to_bytes(static_cast<To>(from_bytes<From>(bytes)));
}

/// Serializes arguments as parameters of type P and records the positions of RemoteValues.
class ArgumentPacker {
 public:
  template <class P, class A>
  void add(A&& argument) {
    if constexpr (kHasRemote<std::remove_cvref_t<A>>) {
      add_remote(argument, static_cast<const P*>(nullptr));
    } else if constexpr (std::is_same_v<std::remove_cvref_t<A>, P>) {
      write<P>(out_, argument);
    } else {
      write<P>(out_, static_cast<P>(std::forward<A>(argument)));
    }
  }
  PackedArguments take() { return {out_.take(), out_.take_named(), std::move(inputs_)}; }

 private:
  template <class T, class P>
  void add_remote(const RemoteValue<T>& value, const P*) {
    static_assert(std::is_convertible_v<T, P>,
                  "the earlier function's result does not convert to this function's parameter");
    ArgumentInput input{out_.bytes().size(), value.result(), nullptr};
    if constexpr (!std::is_same_v<T, P>) input.convert = &convert_bytes<T, P>;
    inputs_.push_back(std::move(input));
  }
  template <class A, class P>
  void add_remote(const std::vector<A>& values, const std::vector<P>*) {
    write(out_, std::uint64_t{values.size()});
    for (const A& value : values) add<P>(value);
  }
  template <class A, class B, class P, class Q>
  void add_remote(const std::pair<A, B>& value, const std::pair<P, Q>*) {
    add<P>(value.first);
    add<Q>(value.second);
  }
  template <class... A, class... P>
  void add_remote(const std::tuple<A...>& values, const std::tuple<P...>*) {
    std::apply([this](const A&... value) { (add<P>(value), ...); }, values);
  }
  template <class K, class A, class P>
  void add_remote(const std::map<K, A>& values, const std::map<K, P>*) {
    write(out_, std::uint64_t{values.size()});
    for (const auto& [key, value] : values) {
      write(out_, key);
      add<P>(value);
    }
  }

  Writer out_;
  std::vector<ArgumentInput> inputs_;
};

/// Returns true if fn can be called on a worker with these arguments. Otherwise compilation fails, with one
/// error at a time.
template <auto fn, class... P, class... Args>
constexpr bool check_arguments(const std::tuple<P...>*, const TypeList<Args...>*) {
  if constexpr (sizeof...(P) != sizeof...(Args)) {
    static_assert(sizeof...(P) == sizeof...(Args),
                  "expected as many arguments as the function has parameters");
    return false;
  } else if constexpr (!(Serializable<P> && ...)) {
    (require_serializable<P>(), ...);
    return false;
  } else if constexpr (!kTakesValues<fn>) {
    static_assert(!not_callable_with_values_of<P...>);
    return false;
  } else if constexpr (!((kHasRemote<std::remove_cvref_t<Args>> || std::is_constructible_v<P, Args>)&&...)) {
    (require_convertible<Args, P>(), ...);
    return false;
  } else {
    return true;
  }
}

/// Serializes the arguments of a call as the function's parameter types.
template <auto fn, class... Args>
PackedArguments pack_arguments(Args&&... args) {
  constexpr const ArgumentsOf<fn>* kParameters = nullptr;
  ArgumentPacker packer;
  if constexpr (check_arguments<fn>(kParameters, static_cast<const TypeList<Args...>*>(nullptr))) {
    [&]<class... P>(const std::tuple<P...>*) { (packer.add<P>(std::forward<Args>(args)), ...); }(kParameters);
  }
  return packer.take();
}

/// Returns a copy of a nested value in which each RemoteValue is replaced by its fetched value.
template <class T>
T fetched(const RemoteValue<T>& value) {
  return value.fetch();
}
template <class T>
requires(!kHasRemote<T>) T fetched(const T& value) { return value; }
template <class T>
requires kHasRemote<T>
auto fetched(const std::vector<T>& values);
template <class A, class B>
requires kHasRemote<std::pair<A, B>>
auto fetched(const std::pair<A, B>& value);
template <class... T>
requires kHasRemote<std::tuple<T...>>
auto fetched(const std::tuple<T...>& values);
template <class K, class V>
requires kHasRemote<V>
auto fetched(const std::map<K, V>& values);

template <class T>
requires kHasRemote<T>
auto fetched(const std::vector<T>& values) {
  using Value = decltype(fetched(values.front()));
  if constexpr (std::is_void_v<Value>) {
    for (const T& value : values) fetched(value);
  } else {
    std::vector<Value> out;
    out.reserve(values.size());
    for (const T& value : values) out.push_back(fetched(value));
    return out;
  }
}
template <class A, class B>
requires kHasRemote<std::pair<A, B>>
auto fetched(const std::pair<A, B>& value) { return std::pair{fetched(value.first), fetched(value.second)}; }
template <class... T>
requires kHasRemote<std::tuple<T...>>
auto fetched(const std::tuple<T...>& values) {
  return std::apply([](const T&... value) { return std::tuple{fetched(value)...}; }, values);
}
template <class K, class V>
requires kHasRemote<V>
auto fetched(const std::map<K, V>& values) {
  std::map<K, decltype(fetched(values.begin()->second))> out;
  for (const auto& [key, value] : values) out.emplace(key, fetched(value));
  return out;
}

}  // namespace detail
}  // namespace capstan
