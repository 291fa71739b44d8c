// heartbeat_actor.hpp -- heartbeats of all members to the coordinator, and the detection of a silent member.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "capstan/error.hpp"
#include "simulate/coordinator_actor.hpp"

namespace capstan::simulate {

/// Models src/cluster/membership/failure_detector.cpp: a member sends a heartbeat each period, which is a
/// fifth of the timeout. The coordinator checks all members once a period, and suspects those that will have
/// been silent for the timeout before its next check. The arguments of the constructor must outlive it.
class HeartbeatActor {
 public:
  static constexpr double kPeriodsOfATimeout = 5;

  /// Throws Error(invalid_argument) for a job whose heartbeat period is 0.
  HeartbeatActor(Simulation& simulation, CoordinatorActor& coordinator, const JobModel& job,
                 const Constants& constants, RandomSource& random)
      : simulation_(simulation),
        coordinator_(coordinator),
        job_(job),
        constants_(constants),
        heard_(static_cast<std::size_t>(job.workers + job.ps), 0),
        silent_(heard_.size(), false) {
    if (!(job.heartbeat_period > 0)) {
      throw Error(Code::invalid_argument,
                  "cannot simulate heartbeats: the heartbeat period is 0 s, expected more");
    }
    for (std::size_t member = 0; member < heard_.size(); ++member) {
      simulation_.after(random.uniform() * job.heartbeat_period, [this, member] { beat(member); });
    }
    simulation_.after(random.uniform() * job.heartbeat_period, [this] { check(); });
  }

  /// Stops the heartbeats of a member now.
  void kill(std::size_t member) {
    silent_[member] = true;
    killed_ = simulation_.now();
  }
  /// Seconds from kill() to the suspicion of the member; infinite if it was not suspected yet.
  double detection_time() const noexcept { return detected_ - killed_; }
  /// Members that were suspected although they sent heartbeats.
  int false_suspicions() const noexcept { return false_suspicions_; }

 private:
  void beat(std::size_t member) {
    if (silent_[member]) return;
    // The coordinator receives the heartbeat, and answers it.
    coordinator_.receive(2 * constants_.message, [this, member] { heard_[member] = simulation_.now(); });
    simulation_.after(job_.heartbeat_period, [this, member] { beat(member); });
  }

  void check() {
    const double seconds = static_cast<double>(heard_.size()) * constants_.check_member;
    coordinator_.receive(seconds, [this] {
      const double limit = simulation_.now() - (kPeriodsOfATimeout - 1) * job_.heartbeat_period;
      for (std::size_t member = 0; member < heard_.size(); ++member) {
        if (heard_[member] > limit) continue;
        if (!silent_[member]) ++false_suspicions_;
        if (silent_[member] && detected_ == kNever) detected_ = simulation_.now();
      }
      simulation_.after(job_.heartbeat_period, [this] { check(); });
    });
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  Simulation& simulation_;
  CoordinatorActor& coordinator_;
  const JobModel& job_;
  const Constants& constants_;
  std::vector<double> heard_;  // time of the last heartbeat, by member
  std::vector<bool> silent_;   // by member
  double killed_ = 0;
  double detected_ = kNever;
  int false_suspicions_ = 0;
};

}  // namespace capstan::simulate
