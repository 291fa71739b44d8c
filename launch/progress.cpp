// progress.cpp -- formats the bar, the log line, the rate and the time left.
#include "launch/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <ostream>
#include <utility>

#include "launch/units.hpp"

namespace capstan::launch {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::string_view kEraseLine = "\r\x1b[K";

double per_second(std::int64_t count, Seconds time) {
  return time.count() > 0 ? static_cast<double>(count) / time.count() : 0;
}

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("loss {:.4f}", loss) : "loss -";
}

std::string time_left(const ProgressState& state, double rate) {
  if (rate <= 0) return "? left";
  // Clamped: a rate near 0 must not overflow the clock.
  const double seconds =
      std::min(static_cast<double>(std::max<std::int64_t>(state.total - state.done, 0)) / rate, 1e9);
  return fmt::format("{}{} left", state.may_end_early ? "at most " : "",
                     short_time(std::chrono::milliseconds(std::llround(seconds * 1e3))));
}

double fraction(const ProgressState& state) {
  if (state.total <= 0) return 0;
  return std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0);
}

}  // namespace

ProgressOptions ProgressOptions::for_standard_error() {
  ProgressOptions options;
  options.terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (options.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = size.ws_col;
  }
  return options;
}

Progress::Progress(std::ostream& sink, ProgressOptions options, Clock clock)
    : sink_(sink), options_(options), clock_(std::move(clock)) {}

Progress::~Progress() {
  try {
    if (on_screen_) sink_ << '\n' << std::flush;
  } catch (const std::exception&) {
    // The sink is broken, so there is nowhere to report to.
  }
}

void Progress::update(const ProgressState& state) {
  if (finished_) return;
  const Time now = clock_();
  const auto interval = options_.terminal ? options_.redraw_every : options_.line_every;
  if (!started_) {
    started_ = true;
    first_ = {now, state.done};
    samples_ = {first_};
    // A log gets no line before the first interval.
    drawn_at_ = options_.terminal ? now - interval : now;
  }
  if (now - drawn_at_ < interval) return;
  drawn_at_ = now;

  samples_.push_back({now, state.done});
  while (samples_.size() > 2 && now - samples_[1].time >= options_.rate_window) samples_.pop_front();

  if (options_.terminal) {
    sink_ << kEraseLine << bar_line(state) << std::flush;
    on_screen_ = true;
  } else {
    sink_ << log_line(state) << '\n' << std::flush;
  }
}

void Progress::clear() {
  if (on_screen_) sink_ << kEraseLine << std::flush;
  on_screen_ = false;
  drawn_at_ = drawn_at_ - (options_.terminal ? options_.redraw_every : std::chrono::milliseconds(0));
}

void Progress::finish(const ProgressState& state) {
  if (finished_) return;
  clear();
  finished_ = true;
  const Time now = clock_();
  if (!started_) first_ = {now, state.done};
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now - first_.time);
  const std::int64_t count = state.done - first_.done;
  std::ostream& sink = options_.summary_sink != nullptr ? *options_.summary_sink : sink_;
  sink << fmt::format("epoch {}/{}: {} {} in {}, {}, {}\n", state.epoch, state.epochs,
                      short_count(static_cast<double>(count)), options_.unit, short_time(took),
                      rate_text(per_second(count, took), options_.unit), loss_text(state.loss))
       << std::flush;
}

double Progress::recent_rate() const {
  const Sample& oldest = samples_.front();
  const Sample& newest = samples_.back();
  return per_second(newest.done - oldest.done, newest.time - oldest.time);
}

std::string Progress::bar_line(const ProgressState& state) const {
  const std::string left = headline(state) + " ";
  const std::string right = progress_text(state);
  // The last column stays empty: some terminals wrap when it is written.
  const std::size_t columns = options_.width > 0 ? options_.width - 1 : 0;
  constexpr std::size_t kMinCells = 5;
  constexpr std::size_t kMaxCells = 40;
  std::string bar;
  if (left.size() + right.size() + kMinCells + 2 <= columns) {
    const std::size_t cells = std::min(kMaxCells, columns - left.size() - right.size() - 2);
    const auto full = static_cast<std::size_t>(fraction(state) * static_cast<double>(cells));
    bar = fmt::format("[{:#<{}}{:.<{}}]", "", full, "", cells - full);
  }
  return (left + bar + right).substr(0, columns);
}

std::string Progress::log_line(const ProgressState& state) const {
  return headline(state) + progress_text(state);
}

std::string Progress::headline(const ProgressState& state) const {
  if (!options_.label.empty()) return std::string(options_.label);
  return fmt::format("epoch {}/{}", state.epoch, state.epochs);
}

std::string Progress::progress_text(const ProgressState& state) const {
  const double rate = recent_rate();
  const std::string loss = options_.label.empty() ? "  " + loss_text(state.loss) : "";
  return fmt::format(" {:3.0f}%  {}{}  {}", std::floor(fraction(state) * 100), rate_text(rate, options_.unit),
                     loss, time_left(state, rate));
}

}  // namespace capstan::launch
