// cancellation.hpp -- how a running function detects that it is cancelled.
//
// A scheduled function is cancelled when the function of another closure fails and the error cancels the
// queue, or when its own deadline passes. A started split of a SplitDataset is not cancelled, because its
// pushes so far would be applied again when the split is scheduled again. Cancellation is cooperative: a
// function that never checks runs to its end. Lookups, pulls, pushes, assignments, waits of update groups,
// and Iterator::next check, and throw Error(cancelled) before they have any effect; RemoteValue::fetch of the
// function then throws the same error. Earlier pushes of the function remain applied.
#pragma once

#include <functional>
#include <stop_token>

#include "capstan/detail/export.hpp"

namespace capstan {

/// Returns true once the function that the calling thread runs is cancelled. Always false on threads other
/// than the function's and its replicas', and in functions of schedule_on, which errors do not cancel. Costs
/// a relaxed atomic load.
CAPSTAN_API bool cancelled() noexcept;

/// Throws Error(cancelled) if cancelled().
CAPSTAN_API void throw_if_cancelled();

/// Calls a callback once if the function that the calling thread runs is cancelled: in the constructor if it
/// is already cancelled, and otherwise on another thread of the worker, shortly after cancelled() becomes
/// true. If the function returns before that, the callback is not called. Has no effect if it is constructed
/// on a thread where cancelled() is always false.
///
/// The callback must not throw, must return soon, and must not use variables: its purpose is to notify a
/// waiting thread. The destructor waits for a running callback, so its caller must hold no lock that the
/// callback takes.
class CAPSTAN_API CancellationCallback {
 public:
  explicit CancellationCallback(std::function<void()> callback);
  CancellationCallback(const CancellationCallback&) = delete;
  CancellationCallback& operator=(const CancellationCallback&) = delete;

 private:
  std::stop_callback<std::function<void()>> callback_;
};

}  // namespace capstan
