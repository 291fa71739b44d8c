// save_schedule.cpp -- decides when to save, by steps, time, overhead and requests.
#include "capstan/checkpoint.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "capstan/error.hpp"

namespace capstan {
namespace {

/// Number of requests; a counter, so that every schedule sees each request.
std::atomic<unsigned> requests{0};
static_assert(std::atomic<unsigned>::is_always_lock_free, "a signal handler increments it");

void count_request(int /*signal*/) { SaveSchedule::request(); }

}  // namespace

SaveSchedule::SaveSchedule(SaveInterval interval, std::int64_t step, Clock::time_point now)
    : interval_(interval), step_(step), saved_at_(now), requests_seen_(requests) {
  if (interval.steps >= 0 && interval.time.count() >= 0 && interval.overhead >= 0 && interval.overhead < 1)
    return;
  throw Error(
      Code::invalid_argument,
      fmt::format("save interval: found {} steps, {} ms and an overhead of {}, expected numbers that are not "
                  "negative and an overhead below 1",
                  interval.steps, interval.time.count(), interval.overhead));
}

bool SaveSchedule::due(std::int64_t step, Clock::time_point now) const {
  if (requests_seen_ != requests) return true;
  if (interval_.steps > 0 && step - step_ >= interval_.steps) return true;
  const Clock::duration since = now - saved_at_;
  if (interval_.time.count() > 0 && std::chrono::floor<std::chrono::milliseconds>(since) >= interval_.time)
    return true;
  if (interval_.overhead <= 0) return false;
  using Seconds = std::chrono::duration<double>;
  return !has_saved_ || Seconds(took_) <= interval_.overhead * (Seconds(since) + Seconds(took_));
}

void SaveSchedule::saved(std::int64_t step, Clock::time_point begin, Clock::time_point end) {
  step_ = step;
  saved_at_ = end;
  took_ = end - begin;
  has_saved_ = true;
  requests_seen_ = requests;
}

void SaveSchedule::request() noexcept { requests.fetch_add(1, std::memory_order_relaxed); }

void SaveSchedule::request_on(int signal) {
  struct sigaction action {};
  action.sa_handler = &count_request;
  action.sa_flags = SA_RESTART;
  if (sigaction(signal, &action, nullptr) == 0) return;
  throw Error(Code::invalid_argument,
              fmt::format("cannot install a handler for signal {}: {}", signal, std::strerror(errno)));
}

}  // namespace capstan
