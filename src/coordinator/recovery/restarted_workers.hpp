// restarted_workers.hpp -- admits workers that were restarted or join late.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "cluster/runtime.hpp"
#include "coordinator/scheduling/dispatcher.hpp"
#include "transport/fabric.hpp"

namespace capstan::coordinator {

/// A ps rejects unknown ranks, so each is told about the worker first; closures run there when all have
/// answered. Used by the thread that drives the control loop.
class RestartedWorkers {
 public:
  /// Marks a worker as lost, with a state and a cause, and calls `forget`.
  using Lose =
      std::function<void(transport::Peer& worker, cluster::MemberState state, const std::string& cause)>;

  RestartedWorkers(cluster::Runtime& runtime, Dispatcher& dispatcher, Lose lose)
      : runtime_(runtime), dispatcher_(dispatcher), lose_(std::move(lose)) {}

  /// Handler of kJoin, from the worker, or from a ps on behalf of a worker that has lost the coordinator.
  void ask(const transport::Message& message);
  /// The same for a worker that joins late.
  void ask(cluster::Member member) { asking_.push_back({std::move(member), false}); }
  /// A ps has answered that it knows the rank.
  void known(int rank, int ps);
  /// A ps has returned: repeats requests that it has not answered.
  void tell_again(transport::Peer& ps);
  /// The worker is dead.
  void forget(const transport::Peer& peer);
  /// Called outside of handlers. Returns true if a worker has asked to join, or was admitted.
  bool advance();
  void send_to_all(std::uint16_t type);

 private:
  struct Asking {
    cluster::Member member;
    bool by_a_ps = false;
  };
  struct Returning {
    transport::Peer* peer;
    int index;
    std::set<int> open;  // ps that have not answered
    std::chrono::steady_clock::time_point deadline;
  };

  bool acceptable(const cluster::Member& member) const;
  void begin(const Asking& asking);
  void give_up(const Returning& worker);
  std::chrono::steady_clock::time_point deadline_of(const Returning& worker) const;

  cluster::Runtime& runtime_;
  Dispatcher& dispatcher_;
  Lose lose_;
  std::vector<Asking> asking_;
  std::vector<Returning> returning_;
};

}  // namespace capstan::coordinator
