// cancellation.hpp -- how a running function learns that it is to stop.
//
// A scheduled function is cancelled when the function of another closure fails and the error cancels the
// queue, or when its own deadline passes. A split of a SplitDataset that has begun is not: half of it would
// count twice. Nothing interrupts a function: one that never looks runs to its end.
// Lookups, pulls, pushes, assignments, waits of update groups, and Iterator::next look, and throw
// Error(cancelled) before they do anything; the function's fetch then throws the same. What the function had
// pushed before stays applied.
#pragma once

#include <functional>
#include <stop_token>

#include "capstan/detail/export.hpp"

namespace capstan {

/// Returns true once the function that the calling thread runs is cancelled. False on any other thread but
/// those of its replicas, and in functions of schedule_on, which errors leave alone. A relaxed atomic load.
CAPSTAN_API bool cancelled() noexcept;

/// Throws Error(cancelled) if cancelled().
CAPSTAN_API void throw_if_cancelled();

/// Calls a function once when the function that the calling thread runs is cancelled: on a thread of the
/// worker, or in the constructor if it is cancelled already. That is shortly after cancelled() becomes true:
/// a function that returns first has no call. Never calls it on a thread where cancelled() is always false.
///
/// The callback must not throw, must return soon, and must not use variables: it is for waking what waits.
/// The destructor waits for a callback that runs, so it must hold no lock that the callback takes.
class CAPSTAN_API CancellationCallback {
 public:
  explicit CancellationCallback(std::function<void()> callback);
  CancellationCallback(const CancellationCallback&) = delete;
  CancellationCallback& operator=(const CancellationCallback&) = delete;

 private:
  std::stop_callback<std::function<void()>> callback_;
};

}  // namespace capstan
