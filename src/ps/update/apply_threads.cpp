// apply_threads.cpp -- hands out parts by one atomic word.
#include "ps/update/apply_threads.hpp"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "base/backoff.hpp"
#include "base/log.hpp"
#include "capstan/error.hpp"

namespace capstan::ps {
namespace {

using namespace std::chrono_literals;

/// How long a thread polls for the next call, on a core of its own and on a core that it shares.
constexpr Backoff::Time kPoll = 1ms;
constexpr Backoff::Time kPollOnSharedCore = 200us;

}  // namespace

ApplyThreads::ApplyThreads(int count) : count_(count), claim_(static_cast<Claim>(count)) {
  try {
    for (int i = 1; i < count; ++i) {
      threads_.emplace_back([this, tag = log::rank_tag()] {
        log::set_rank_tag(tag);
        serve();
      });
    }
  } catch (const std::system_error& error) {
    const std::size_t started = threads_.size() + 1;
    stop();
    throw Error(Code::resource_exhausted,
                fmt::format("--ps-threads {}: cannot start thread {}: {}; use fewer threads, or raise the "
                            "limit of processes (ulimit -u)",
                            count, started + 1, error.what()));
  }
}

ApplyThreads::~ApplyThreads() { stop(); }

void ApplyThreads::stop() noexcept {
  stop_.store(true);
  wakes_.fetch_add(1);
  wakes_.notify_all();
  threads_.clear();
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
  while (returned_.load(std::memory_order_acquire) != count_) {
    if (!backoff.pause()) std::this_thread::yield();  // the thread that is awaited may need this core
  }
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
