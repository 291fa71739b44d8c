// apply_threads.cpp -- hands out parts by one atomic word.
#include "ps/update/apply_threads.hpp"

#include <chrono>
#include <utility>

#include "base/backoff.hpp"

namespace capstan::ps {
namespace {

using namespace std::chrono_literals;

/// How long a thread polls for the next call, on a core of its own and on a core that it shares.
constexpr Backoff::Time kPoll = 1ms;
constexpr Backoff::Time kPollOnSharedCore = 200us;

}  // namespace

ApplyThreads::ApplyThreads(int count) : count_(count), claim_(static_cast<Claim>(count)) {
  for (int i = 1; i < count; ++i) threads_.emplace_back([this] { serve(); });
}

ApplyThreads::~ApplyThreads() {
  stop_.store(true);
  wakes_.fetch_add(1);
  wakes_.notify_all();
}

void ApplyThreads::run(const std::function<void(int part)>& f) {
  function_ = &f;
  returned_.store(0, std::memory_order_relaxed);
  const Claim call = (claim_.load(std::memory_order_relaxed) | kPartMask) + 1;
  claim_.store(call);  // a thread that goes to sleep sees the parts, or is counted as sleeping here
  if (sleeping_.load() != 0) {
    wakes_.fetch_add(1);
    wakes_.notify_all();
  }
  while (run_part()) {
  }
  Backoff backoff(kPoll, kPollOnSharedCore);
  while (returned_.load(std::memory_order_acquire) != count_) (void)backoff.pause();
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool ApplyThreads::run_part() {
  Claim claim = claim_.load(std::memory_order_acquire);
  do {
    if (part_of(claim) >= count_) return false;
  } while (!claim_.compare_exchange_weak(claim, claim + 1, std::memory_order_acq_rel));
  // The call does not return before this part has, so its function stays valid.
  try {
    (*function_)(part_of(claim));
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    error_ = std::current_exception();
  }
  returned_.fetch_add(1, std::memory_order_release);
  return true;
}

void ApplyThreads::serve() {
  Backoff backoff(kPoll, kPollOnSharedCore);
  while (!stop_.load()) {
    if (run_part()) {
      backoff.reset();
    } else if (!backoff.pause()) {
      const std::uint32_t seen = wakes_.load();
      sleeping_.fetch_add(1);
      if (!has_part() && !stop_.load()) wakes_.wait(seen);
      sleeping_.fetch_sub(1);
      backoff.reset();
    }
  }
}

}  // namespace capstan::ps
