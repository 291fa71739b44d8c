// shared_link.hpp -- a network link whose flows share the bandwidth equally.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "simulate/simulation.hpp"

namespace capstan::simulate {

/// One direction of a link. Each of n flows has 1/n of the bandwidth. A flow costs O(log n): the link counts
/// the bytes that each flow has sent since the start, and a flow ends at a known value of that count. The
/// simulation must outlive the link, and the link all actions of the simulation.
class SharedLink {
 public:
  /// `bandwidth` in bytes/s, `latency` in seconds. Throws Error(invalid_argument) unless the bandwidth is
  /// positive and the latency is at least 0, both finite.
  SharedLink(Simulation& simulation, double bandwidth, double latency);
  SharedLink(const SharedLink&) = delete;
  SharedLink& operator=(const SharedLink&) = delete;

  /// Sends `bytes`. Calls `arrived` when the last byte has reached the other end.
  void send(double bytes, Simulation::Action arrived);
  /// Number of flows that are being sent.
  std::size_t flows() const noexcept { return flows_.size(); }

 private:
  struct Flow {
    double end;  // value of sent_ at which the flow is complete
    std::uint64_t number;
    Simulation::Action arrived;
    bool operator>(const Flow& other) const noexcept {
      return end != other.end ? end > other.end : number > other.number;
    }
  };

  void advance();
  void schedule_next();
  void finish();

  Simulation& simulation_;
  double bandwidth_;
  double latency_;
  double sent_ = 0;      // bytes that a flow would have sent if it were active since the start
  double advanced_ = 0;  // time up to which sent_ counts
  std::uint64_t started_ = 0;
  std::uint64_t schedule_ = 0;  // number of the last scheduled end; earlier ones are void
  std::priority_queue<Flow, std::vector<Flow>, std::greater<>> flows_;
};

}  // namespace capstan::simulate
