// stop_request.cpp -- stop by a signal, or by the time limit of the Slurm job.
#include "train/stop_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log.hpp"
#include "base/settings.hpp"

namespace capstan::train {
namespace {

/// An answer older than this is refreshed before it ends the training.
constexpr std::chrono::seconds kMaxAnswerAge{10};
/// Interval between queries while Slurm does not answer.
constexpr std::chrono::seconds kRetryInterval{60};

}  // namespace

StopOptions StopOptions::from(const Settings& settings) {
  const std::string& name = settings.text("save-signal");
  return {.signal = name == "USR1"   ? SIGUSR1
                    : name == "USR2" ? SIGUSR2
                                     : 0,
          .margin = settings.duration("save-before-limit"),
          .limit_margin_to_quarter = !settings.given("save-before-limit")};
}

void StopRequest::install_handler(const StopOptions& options) {
  if (options.signal != 0) SaveSchedule::request_on(options.signal);
}

StopRequest::StopRequest(const StopOptions& options, bool can_save, QueryTimeLeft query)
    : options_(options), can_save_(can_save), query_(std::move(query)), signals_({}, 0, Clock::now()) {}

bool StopRequest::signal_received(Clock::time_point now) {
  if (options_.signal == 0 || !signals_.due(0, now)) return false;
  if (can_save_) return true;
  signals_.saved(0, now, now);
  log::warn("cannot save at the signal: --checkpoint-dir is not set; the training continues");
  return false;
}

bool StopRequest::limit_is_near(std::chrono::milliseconds next, Clock::time_point now) const {
  return answer_.left && now + options_.margin + next >= answered_at_ + *answer_.left;
}

void StopRequest::refresh_time_left(Clock::time_point now) {
  const TimeLeft answer = query_();
  if (!answer.known && !queried_) {
    log::warn(
        "Slurm does not report the time left of the job: --save-before-limit has no effect until it does");
  }
  if (answer.left && options_.limit_margin_to_quarter) {
    options_.margin = std::min<std::chrono::milliseconds>(options_.margin, *answer.left / 4);
    options_.limit_margin_to_quarter = false;
  }
  if (answer.known || !answer_.known) {
    answer_ = answer;
    answered_at_ = now;
  }
  queried_ = true;
}

std::string StopRequest::reason(std::chrono::milliseconds next, Clock::time_point now) {
  if (signal_received(now)) return "a signal requested it";
  if (options_.margin.count() == 0 || !can_save_) return "";
  if (!queried_ || (!answer_.known && now >= answered_at_ + kRetryInterval)) refresh_time_left(now);
  if (!limit_is_near(next, now)) return "";
  if (now >= answered_at_ + kMaxAnswerAge) refresh_time_left(now);
  if (!limit_is_near(next, now)) return "";
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(answered_at_ + *answer_.left - now);
  return fmt::format("{} s of the job's time are left", std::max<std::int64_t>(left.count(), 0));
}

}  // namespace capstan::train
