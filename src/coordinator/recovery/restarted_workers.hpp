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

/// A ps rejects unknown ranks, so every ps is notified of the worker first. The worker gets closures once all
/// ps have replied. Used by the thread that drives the control loop.
class RestartedWorkers {
 public:
  /// Marks a worker as lost, with a state and a cause, and calls `forget`.
  using Lose =
      std::function<void(transport::Peer& worker, cluster::MemberState state, const std::string& cause)>;

  RestartedWorkers(cluster::Runtime& runtime, Dispatcher& dispatcher, Lose lose)
      : runtime_(runtime), dispatcher_(dispatcher), lose_(std::move(lose)) {}

  /// Handler of kJoin, from the worker, or from a ps on behalf of a worker that has lost the coordinator.
  void request_admission(const transport::Message& message);
  /// Requests the admission of a worker that joins late.
  void request_admission(cluster::Member member) { requests_.push_back({std::move(member), false}); }
  /// Records the reply of a ps that it knows the rank.
  void note_known(int rank, int ps);
  /// Repeats the requests that a returned ps has not answered.
  void resend_requests(transport::Peer& ps);
  /// Cancels the admission of a worker that is dead.
  void forget(const transport::Peer& peer);
  /// Called outside of handlers. Returns true if a worker has asked to join, or was admitted.
  bool advance();
  void send_to_all(std::uint16_t type);

 private:
  struct AdmissionRequest {
    cluster::Member member;
    bool from_ps = false;
  };
  struct PendingAdmission {
    transport::Peer* peer;
    int index;
    std::set<int> open;  // ps that have not answered
    std::chrono::steady_clock::time_point deadline;
  };

  bool acceptable(const cluster::Member& member) const;
  void begin(const AdmissionRequest& request);
  void give_up(const PendingAdmission& worker);
  std::chrono::steady_clock::time_point deadline_of(const PendingAdmission& worker) const;

  cluster::Runtime& runtime_;
  Dispatcher& dispatcher_;
  Lose lose_;
  std::vector<AdmissionRequest> requests_;
  std::vector<PendingAdmission> pending_;
};

}  // namespace capstan::coordinator
