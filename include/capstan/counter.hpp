// counter.hpp -- 64-bit counters on the ps.
#pragma once

#include <cstdint>
#include <string>

#include "capstan/detail/export.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

namespace strategy {
class Context;
}  // namespace strategy

/// A 64-bit counter on a ps to which any rank may add, such as a global step.
class CAPSTAN_API Counter {
 public:
  /// Starts at 0. REQUIRES: a strategy's scope. Throws Error: already_exists for a name that is taken,
  /// invalid_argument for a name that is not valid for a variable.
  explicit Counter(std::string name);

  /// Adds as a push does. An addition in a closure has been applied when the closure counts as done, and
  /// counts once even if the closure runs again after its worker died.
  void add(std::int64_t delta) const;
  /// Adds immediately and returns the previous value. A closure that runs again repeats the addition.
  std::int64_t fetch_add(std::int64_t delta) const;
  std::int64_t value() const { return fetch_add(0); }

 private:
  friend struct Serializer<Counter>;
  explicit Counter(strategy::Context& context) : context_(&context) {}
  /// The context of the rank that runs the calling closure.
  static strategy::Context& context_here();

  strategy::Context* context_;
  std::int32_t ps_ = 0;
  std::uint32_t index_ = 0;
};

template <>
struct Serializer<Counter> {
  static void write(Writer& out, const Counter& counter) {
    capstan::write(out, counter.ps_);
    capstan::write(out, counter.index_);
  }
  static Counter read(Reader& in) {
    Counter counter(Counter::context_here());
    counter.ps_ = capstan::read<std::int32_t>(in);
    counter.index_ = capstan::read<std::uint32_t>(in);
    return counter;
  }
};

}  // namespace capstan
