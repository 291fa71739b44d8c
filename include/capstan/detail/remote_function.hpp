// remote_function.hpp -- registers functions so that other ranks of the same binary can run them.
//
// Naming a function as a template argument, schedule<&fn>, registers it during static initialization. Every
// rank of one binary registers the same functions in the same order, so a number identifies a function.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/serialize.hpp"

namespace capstan::detail {

struct RemoteFunction {
  const char* name;  // for error messages
  /// Deserializes the arguments, calls the function and serializes its result. Null for a function that is
  /// registered to make an object.
  std::vector<std::byte> (*run)(Reader&);
  /// Deserializes the arguments, calls the function and returns its result as an object. Null for a function
  /// that is registered to be run for its result.
  std::shared_ptr<void> (*make)(Reader&);
};

/// Returns the function's number. Called during static initialization.
CAPSTAN_API std::uint32_t register_function(const RemoteFunction& function);
/// Throws Error(internal) for an unregistered number.
CAPSTAN_API const RemoteFunction& registered_function(std::uint32_t number);

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using Result = std::remove_cvref_t<R>;
  using Arguments = std::tuple<std::remove_cvref_t<P>...>;
};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...)> : Signature<R (*)(P...)> {};

template <auto fn>
using ResultOf = typename Signature<std::remove_cvref_t<decltype(fn)>>::Result;
template <auto fn>
using ArgumentsOf = typename Signature<std::remove_cvref_t<decltype(fn)>>::Arguments;

// The variables below are marked `unavailable`, so that using one is a one-line compile error. It names the
// type that a remote function cannot use.
#if defined(__has_attribute) && __has_attribute(unavailable)
#define CAPSTAN_UNAVAILABLE(text) __attribute__((unavailable(text)))
inline constexpr bool kUnavailable = false;
#else  // the static_asserts below report the error
#define CAPSTAN_UNAVAILABLE(text)
inline constexpr bool kUnavailable = true;
#endif
template <class... Type>
CAPSTAN_UNAVAILABLE(
    "arguments and results of functions that workers run must be serializable, which this type is not: "
    "expected an arithmetic type, an enum, std::string, a vector, array, pair, tuple, optional or map, an "
    "aggregate of these, a variable or a per-worker object; specialize capstan::Serializer for any other "
    "type")
inline constexpr bool not_serializable = kUnavailable;
template <class... Parameter>
CAPSTAN_UNAVAILABLE(
    "a worker calls the function with its own copies of the arguments: expected parameters that are values "
    "or const references")
inline constexpr bool not_callable_with_values_of = kUnavailable;
template <class Argument, class Parameter>
CAPSTAN_UNAVAILABLE("this argument does not convert to the function's parameter")
inline constexpr bool not_convertible = kUnavailable;
template <class F>
CAPSTAN_UNAVAILABLE(
    "this function object cannot be sent to workers: expected one without captures, or a struct of "
    "serializable members; name a function as a template argument, "
    "create_per_worker_dataset<&f>(arguments...), "
    "and pass captured values as arguments")
inline constexpr bool not_portable = kUnavailable;
#undef CAPSTAN_UNAVAILABLE

template <class T>
constexpr void require_serializable() {
  using Part = typename Unserializable<T>::Type;
  if constexpr (std::is_same_v<T, Part>) {
    static_assert(!not_serializable<T>);
  } else if constexpr (!std::is_void_v<Part>) {
    static_assert(!not_serializable<T, Part>);
  }
}
template <class Argument, class Parameter>
constexpr void require_convertible() {
  if constexpr (!std::is_constructible_v<Parameter, Argument>)
    static_assert(!not_convertible<Argument, Parameter>);
}

template <auto fn, class Arguments = ArgumentsOf<fn>>
inline constexpr bool kTakesValues = false;
template <auto fn, class... P>
inline constexpr bool kTakesValues<fn, std::tuple<P...>> = std::is_invocable_v<decltype(fn), P...>;

/// A call of fn, written Call<fn>{read<A>(in), read<B>(in)}: a braced list is evaluated from left to right.
template <auto fn, class Result = ResultOf<fn>>
struct Call {
  template <class... P>
  explicit Call(P&&... arguments) : result(fn(std::move(arguments)...)) {}
  Result result;
};
template <auto fn>
struct Call<fn, void> {
  template <class... P>
  explicit Call(P&&... arguments) {
    fn(std::move(arguments)...);
  }
};
template <auto fn, class... P>
Call<fn> call(Reader& in, const std::tuple<P...>*) {
  (void)in;  // unused for a function without parameters
  return Call<fn>{read<P>(in)...};
}

template <auto fn>
std::vector<std::byte> run_function(Reader& in) {
  constexpr const ArgumentsOf<fn>* kParameters = nullptr;
  if constexpr (std::is_void_v<ResultOf<fn>>) {
    call<fn>(in, kParameters);
    return {};
  } else {
    return to_bytes<ResultOf<fn>>(call<fn>(in, kParameters).result);
  }
}

template <auto fn>
std::shared_ptr<void> make_with_function(Reader& in) {
  constexpr const ArgumentsOf<fn>* kParameters = nullptr;
  return std::make_shared<ResultOf<fn>>(call<fn>(in, kParameters).result);
}

template <auto fn>
const char* name_of() {
  return __PRETTY_FUNCTION__;  // "... [with auto fn = train_step]": error messages extract the name
}

/// Null for a function that cannot be run remotely: the compile error is reported where it is used.
template <auto fn>
constexpr auto run_or_null() {
  constexpr bool kCanSendArguments = Serializable<ArgumentsOf<fn>> && kTakesValues<fn>;
  constexpr bool kCanSendResult = std::is_void_v<ResultOf<fn>> || Serializable<ResultOf<fn>>;
  using Run = decltype(RemoteFunction::run);
  if constexpr (kCanSendArguments && kCanSendResult) {
    return Run(&run_function<fn>);
  } else {
    return Run(nullptr);
  }
}
template <auto fn>
constexpr auto make_or_null() {
  using Make = decltype(RemoteFunction::make);
  if constexpr (Serializable<ArgumentsOf<fn>> && kTakesValues<fn> && !std::is_void_v<ResultOf<fn>>) {
    return Make(&make_with_function<fn>);
  } else {
    return Make(nullptr);
  }
}

/// Registers a function that a worker runs for its result.
template <auto fn>
struct Registered {
  static const std::uint32_t number;
};
template <auto fn>
const std::uint32_t Registered<fn>::number = register_function({name_of<fn>(), run_or_null<fn>(), nullptr});

/// Registers a function that creates an object on the rank that runs it.
template <auto fn>
struct RegisteredMaker {
  static const std::uint32_t number;
};
template <auto fn>
const std::uint32_t RegisteredMaker<fn>::number = register_function({name_of<fn>(), nullptr,
                                                                     make_or_null<fn>()});

/// A function object without state, which is sent as its type alone.
template <class F>
concept Stateless = std::is_empty_v<F> && std::is_default_constructible_v<F>;
/// A function object that is stateless or serializable, so that another rank can call it.
template <class F>
concept Portable = Stateless<F> ||(std::is_class_v<F>&& Serializable<F>);

/// Wraps a function object for serialization. Not an aggregate, so that only the Serializer below applies.
template <class F>
struct Carried {
  explicit Carried(F object) : function(std::move(object)) {}
  F function;
};

}  // namespace capstan::detail

namespace capstan {

template <detail::Portable F>
struct Serializer<detail::Carried<F>> {
  static void write(Writer& out, const detail::Carried<F>& carried) {
    if constexpr (!detail::Stateless<F>) capstan::write(out, carried.function);
  }
  static detail::Carried<F> read(Reader& in) {
    if constexpr (detail::Stateless<F>) {
      return detail::Carried<F>(F());
    } else {
      return detail::Carried<F>(capstan::read<F>(in));
    }
  }
};

}  // namespace capstan
