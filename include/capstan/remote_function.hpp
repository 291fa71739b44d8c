// remote_function.hpp -- how a function becomes something that another rank of the same binary can run.
//
// Naming a function as a template argument, schedule<&fn>, registers it while the program is loaded; every
// rank of one binary registers the same functions in the same order, so a number is enough to name one.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/serialize.hpp"

namespace capstan::detail {

struct RemoteFunction {
  const char* name;  // for messages
  /// Reads arguments, calls, returns the result as bytes.
  std::vector<std::byte> (*run)(Reader&);
  /// Reads arguments, calls, keeps the result as an object; null when there is none.
  std::shared_ptr<void> (*make)(Reader&);
};

/// Its number. Called while the program is loaded.
std::uint32_t register_function(const RemoteFunction& function);
/// Throws Error(internal) for a number that no function has.
const RemoteFunction& registered_function(std::uint32_t number);

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using Result = R;
  using Arguments = std::tuple<std::remove_cvref_t<P>...>;
};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R (*)(P...)> {};

template <auto fn>
using ResultOf = typename Signature<std::remove_cvref_t<decltype(fn)>>::Result;
template <auto fn>
using ArgumentsOf = typename Signature<std::remove_cvref_t<decltype(fn)>>::Arguments;

template <auto fn>
std::vector<std::byte> run_function(Reader& in) {
  auto arguments = read<ArgumentsOf<fn>>(in);
  if constexpr (std::is_void_v<ResultOf<fn>>) {
    std::apply(fn, std::move(arguments));
    return {};
  } else if constexpr (requires(Writer & out, ResultOf<fn> result) {
                         Serializer<ResultOf<fn>>::write(out, result);
                       }) {
    return to_bytes(std::apply(fn, std::move(arguments)));
  } else {
    throw Error(Code::internal, "the result of this function cannot travel");
  }
}

template <auto fn>
std::shared_ptr<void> make_with_function(Reader& in) {
  if constexpr (std::is_void_v<ResultOf<fn>>) {
    return nullptr;
  } else {
    return std::make_shared<ResultOf<fn>>(std::apply(fn, read<ArgumentsOf<fn>>(in)));
  }
}

template <auto fn>
const char* name_of() {
  return __PRETTY_FUNCTION__;  // "... [with auto fn = train_step]": the message picks the name out
}

template <auto fn>
struct Registered {
  static const std::uint32_t number;
};
template <auto fn>
const std::uint32_t Registered<fn>::number = register_function({name_of<fn>(), &run_function<fn>,
                                                                &make_with_function<fn>});

/// Arguments of a call as the function's parameter types, in bytes.
template <auto fn, class... Args>
std::vector<std::byte> pack_arguments(Args&&... args) {
  static_assert(std::tuple_size_v<ArgumentsOf<fn>> == sizeof...(Args),
                "as many arguments as the function has");
  return to_bytes(ArgumentsOf<fn>(std::forward<Args>(args)...));
}

}  // namespace capstan::detail
