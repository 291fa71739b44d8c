// shared_link.cpp -- processor sharing among the flows of a link.
#include "simulate/shared_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::simulate {

SharedLink::SharedLink(Simulation& simulation, double bandwidth, double latency)
    : simulation_(simulation), bandwidth_(bandwidth), latency_(latency) {
  if (!std::isfinite(bandwidth) || bandwidth <= 0 || !std::isfinite(latency) || latency < 0) {
    throw Error(
        Code::invalid_argument,
        fmt::format("cannot simulate a link: its bandwidth is {} bytes/s and its latency {} s, expected "
                    "a positive bandwidth and a latency of at least 0",
                    bandwidth, latency));
  }
}

void SharedLink::send(double bytes, Simulation::Action arrived) {
  advance();
  flows_.push({sent_ + bytes, started_++, std::move(arrived)});
  schedule_next();
}

void SharedLink::advance() {
  const double elapsed = simulation_.now() - advanced_;
  advanced_ = simulation_.now();
  if (!flows_.empty()) sent_ += elapsed * bandwidth_ / static_cast<double>(flows_.size());
}

void SharedLink::schedule_next() {
  const std::uint64_t scheduled = ++schedule_;
  if (flows_.empty()) return;
  const double left = std::max(0.0, flows_.top().end - sent_);
  simulation_.after(left * static_cast<double>(flows_.size()) / bandwidth_, [this, scheduled] {
    if (scheduled == schedule_) finish();
  });
}

void SharedLink::finish() {
  advance();
  // Rounding must not leave a rest of the flow that ends now.
  sent_ = std::max(sent_, flows_.top().end);
  Simulation::Action arrived = flows_.top().arrived;
  flows_.pop();
  simulation_.after(latency_, std::move(arrived));
  schedule_next();
}

}  // namespace capstan::simulate
