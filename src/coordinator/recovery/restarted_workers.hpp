// restarted_workers.hpp -- workers that were started again, or came late, from their first word until
// closures may run there.
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

/// A ps answers only ranks that it knows, so each is told of the new one first. Used by the thread that
/// drives the control loop.
class RestartedWorkers {
 public:
  /// The worker is lost, and `forget` is called: its agent, which has restarted it, knew of its death first.
  using Lose = std::function<void(transport::Peer& worker)>;

  RestartedWorkers(cluster::Runtime& runtime, Dispatcher& dispatcher, Lose lose)
      : runtime_(runtime), dispatcher_(dispatcher), lose_(std::move(lose)) {}

  /// Handler of kJoin, from the worker, or from a ps on behalf of one that does not know where the
  /// coordinator is: that one is told.
  void ask(const transport::Message& message);
  /// The same of one that came late.
  void ask(cluster::Member member) { asking_.push_back({std::move(member), false}); }
  /// A ps knows the rank.
  void known(int rank, int ps);
  /// A ps that has not answered may not have been told: it has come back.
  void tell_again(transport::Peer& ps);
  /// It has died again.
  void forget(const transport::Peer& peer);
  /// Outside of handlers; true when a worker has asked or may run closures.
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

  cluster::Runtime& runtime_;
  Dispatcher& dispatcher_;
  Lose lose_;
  std::vector<Asking> asking_;
  std::vector<Returning> returning_;
};

}  // namespace capstan::coordinator
