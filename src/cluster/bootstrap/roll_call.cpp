// roll_call.cpp -- the text about missing ranks.
#include "cluster/bootstrap/roll_call.hpp"

#include <fmt/format.h>

#include <utility>

namespace capstan::cluster {
namespace {

constexpr std::size_t kMaxNames = 8;

}  // namespace

RollCall::RollCall(std::vector<std::string> names, Clock::time_point now, Clock::duration period)
    : missing_(names.size()), next_(now + period), period_(period) {
  for (std::string& name : names) all_.push_back({std::move(name), "no contact"});
}

void RollCall::set_state(std::size_t rank, std::string name, std::string state) {
  all_.at(rank).name = std::move(name);
  all_.at(rank).state = std::move(state);
}

void RollCall::joined(std::size_t rank) {
  if (std::exchange(all_.at(rank).joined, true)) return;
  --missing_;
}

std::string RollCall::missing() const {
  std::string text = fmt::format("{} of {}: ", missing_, all_.size());
  std::size_t named = 0;
  for (const Entry& entry : all_) {
    if (entry.joined) continue;
    if (named == kMaxNames) return text + fmt::format(" and {} more", missing_ - named);
    text += fmt::format("{}{} ({})", named > 0 ? ", " : "", entry.name, entry.state);
    ++named;
  }
  return text;
}

std::optional<std::string> RollCall::due(Clock::time_point now) {
  if (complete() || now < next_) return std::nullopt;
  next_ = now + period_;
  return "waiting for " + missing();
}

}  // namespace capstan::cluster
