// cancellation.cpp -- the calling thread's cancellation request, and the functions that check it.
#include "capstan/cancellation.hpp"

#include <utility>

#include "base/cancellation_request.hpp"
#include "capstan/error.hpp"

namespace capstan {
namespace {

constinit thread_local const CancellationRequest* current = nullptr;

}  // namespace

const CancellationRequest* current_cancellation() noexcept { return current; }

CancellationScope::CancellationScope(const CancellationRequest* request) noexcept
    : before_(std::exchange(current, request)) {}
CancellationScope::~CancellationScope() { current = before_; }

bool cancelled() noexcept { return current != nullptr && current->requested(); }

void throw_if_cancelled() {
  if (!cancelled()) return;
  throw Error(Code::cancelled,
              "the function was cancelled while it ran, by the error of another function or by its own "
              "deadline; schedule it again");
}

CancellationCallback::CancellationCallback(std::function<void()> callback)
    : callback_(current != nullptr ? current->callbacks() : std::stop_token(), std::move(callback)) {}

}  // namespace capstan
