// group_stand_in.cpp -- collectives of stand-ins, computed on the host in the order of the GPUs. Sums, means
// and products of floating-point numbers are computed in double, and rounded to their dtype once.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/with_type.hpp"
#include "capstan/dtype.hpp"
#include "gpu/group_driver.hpp"
#include "gpu/stand_in.hpp"

namespace capstan::gpu {
namespace {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// Returns a float that rounds to the same 16-bit number as `x`. Rounds toward zero and sets the last bit if
/// the result is inexact (round to odd), so that a value next to a tie does not become a tie.
float round_to_odd(double x) {
  const auto near = static_cast<float>(x);
  if (static_cast<double>(near) == x || x != x) return near;
  const bool rounded_away_from_zero =
      (near < 0 ? -static_cast<double>(near) : static_cast<double>(near)) > (x < 0 ? -x : x);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(near) - (rounded_away_from_zero ? 1U : 0U);
  return std::bit_cast<float>(bits | 1U);
}

template <class T>
double wide(T x) {
  if constexpr (kIsHalf<T>) {
    return static_cast<float>(x);
  } else {
    return static_cast<double>(x);
  }
}
template <class T>
T rounded(double x) {
  if constexpr (kIsHalf<T>) {
    return T(round_to_odd(x));
  } else {
    return static_cast<T>(x);
  }
}

/// Type in which numbers of type T are combined: unsigned for integers, which then wrap around; else double.
template <class T>
using Wide = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                         std::type_identity<double>>::type;

template <class T>
T combined(Combine how, const std::vector<Part>& parts, std::size_t at) {
  const auto value = [&](const Part& part) { return static_cast<const T*>(part.in)[at]; };
  if (how == Combine::minimum || how == Combine::maximum) {
    T best = value(parts[0]);
    for (const Part& part : parts) {
      const T x = value(part);
      if (how == Combine::minimum ? x < best : best < x) best = x;
    }
    return best;
  }
  const auto widened = [&](const Part& part) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<Wide<T>>(value(part));
    } else {
      return wide(value(part));
    }
  };
  Wide<T> total = widened(parts[0]);
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    const Wide<T> next = widened(parts[rank]);
    total = static_cast<Wide<T>>(how == Combine::product ? total * next : total + next);
  }
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(total);
  } else {
    return rounded<T>(how == Combine::mean ? total / static_cast<double>(parts.size()) : total);
  }
}

std::vector<std::byte> combined(const GroupCall& call, const std::vector<Part>& parts, std::size_t count) {
  std::vector<std::byte> result(count * size_of(call.dtype));
  with_type(call.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::size_t at = 0; at < count; ++at) {
      const T one = combined<T>(call.combine, parts, at);
      std::memcpy(result.data() + at * sizeof(T), &one, sizeof(T));
    }
  });
  return result;
}

/// Performs the call at once. All inputs are read before an output is written, so it works in place.
void perform(const GroupCall& call, const std::vector<Part>& parts) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  switch (call.kind) {
    case GroupCall::Kind::all_reduce: {
      const auto result = combined(call, parts, call.count);
      for (const Part& part : parts) std::memcpy(part.out, result.data(), bytes);
      return;
    }
    case GroupCall::Kind::reduce_scatter: {
      const auto result = combined(call, parts, call.count * parts.size());
      for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        std::memcpy(parts[rank].out, result.data() + rank * bytes, bytes);
      }
      return;
    }
    case GroupCall::Kind::all_gather: {
      std::vector<std::byte> result(bytes * parts.size());
      for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        std::memcpy(result.data() + rank * bytes, parts[rank].in, bytes);
      }
      for (const Part& part : parts) std::memcpy(part.out, result.data(), result.size());
      return;
    }
    case GroupCall::Kind::broadcast: {
      const void* from = parts[static_cast<std::size_t>(call.root)].in;
      for (const Part& part : parts) std::memmove(part.out, from, bytes);
      return;
    }
  }
}

class StandInDriver final : public GroupDriver {
 public:
  explicit StandInDriver(std::vector<const Stream*> streams)
      : streams_(std::move(streams)), group_stream_(streams_[0]->device()), done_(streams_[0]->device()) {
    for (const Stream* stream : streams_) ready_.emplace_back(stream->device());
  }
  /// Aborts the enqueued calls, then empties the group's queue, whose tasks refer to the streams' queues.
  ~StandInDriver() override {
    abort();
    try {
      group_stream_.wait();
    } catch (...) {  // a wait for a stream of the group throws the same error
    }
  }

  void enqueue(const GroupCall& call, std::span<const Part> parts) override {
    for (std::size_t rank = 0; rank < streams_.size(); ++rank) {
      ready_[rank].record(*streams_[rank]);
      group_stream_.begin_after(ready_[rank]);
    }
    group_stream_.stand_in()->enqueue(
        [call, parts = std::vector<Part>(parts.begin(), parts.end()), aborted = aborted_] {
          if (!*aborted) perform(call, parts);
        });
    done_.record(group_stream_);
    for (const Stream* stream : streams_) stream->begin_after(done_);
  }
  std::string failure() override { return ""; }
  void abort() noexcept override { *aborted_ = true; }

 private:
  std::vector<const Stream*> streams_;
  Stream group_stream_;
  std::vector<Event> ready_;
  Event done_;
  std::shared_ptr<std::atomic<bool>> aborted_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace

std::unique_ptr<GroupDriver> make_stand_in_driver(std::vector<const Stream*> streams) {
  return std::make_unique<StandInDriver>(std::move(streams));
}

}  // namespace capstan::gpu
