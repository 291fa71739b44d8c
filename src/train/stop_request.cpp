// stop_request.cpp -- a signal, or the clock of the batch system.
#include "train/stop_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log.hpp"
#include "base/settings.hpp"

namespace capstan::train {
namespace {

/// An answer that is so old is asked for again before the training ends because of it.
constexpr std::chrono::seconds kFresh{10};
/// Slurm that has not answered is asked again after so long.
constexpr std::chrono::seconds kPause{60};

}  // namespace

StopOptions StopOptions::from(const Settings& settings) {
  const std::string& name = settings.text("save-signal");
  return {.signal = name == "USR1"   ? SIGUSR1
                    : name == "USR2" ? SIGUSR2
                                     : 0,
          .margin = settings.duration("save-before-limit"),
          .at_most_a_quarter = !settings.given("save-before-limit")};
}

void StopRequest::listen(const StopOptions& options) {
  if (options.signal != 0) SaveSchedule::request_on(options.signal);
}

StopRequest::StopRequest(const StopOptions& options, bool can_save, Ask ask)
    : options_(options), can_save_(can_save), ask_(std::move(ask)), signals_({}, 0, Clock::now()) {}

bool StopRequest::was_asked(Clock::time_point now) {
  if (options_.signal == 0 || !signals_.due(0, now)) return false;
  if (can_save_) return true;
  signals_.saved(0, now, now);
  log::warn("a signal asks for a checkpoint, but there is no --checkpoint-dir: the training goes on");
  return false;
}

bool StopRequest::is_near(std::chrono::milliseconds next, Clock::time_point now) const {
  return answer_.left && now + options_.margin + next >= asked_ + *answer_.left;
}

void StopRequest::ask_again(Clock::time_point now) {
  const TimeLeft answer = ask_();
  if (!answer.known && !ever_asked_) {
    log::warn(
        "Slurm does not say how much of the job's time is left: --save-before-limit has no effect for now");
  }
  if (answer.left && options_.at_most_a_quarter) {
    options_.margin = std::min<std::chrono::milliseconds>(options_.margin, *answer.left / 4);
    options_.at_most_a_quarter = false;
  }
  if (answer.known || !answer_.known) {
    answer_ = answer;
    asked_ = now;
  }
  ever_asked_ = true;
}

std::string StopRequest::reason(std::chrono::milliseconds next, Clock::time_point now) {
  if (was_asked(now)) return "a signal asked for it";
  if (options_.margin.count() == 0 || !can_save_) return "";
  if (!ever_asked_ || (!answer_.known && now >= asked_ + kPause)) ask_again(now);
  if (!is_near(next, now)) return "";
  if (now >= asked_ + kFresh) ask_again(now);
  if (!is_near(next, now)) return "";
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(asked_ + *answer_.left - now);
  return fmt::format("{} s of the job's time are left", std::max<std::int64_t>(left.count(), 0));
}

}  // namespace capstan::train
