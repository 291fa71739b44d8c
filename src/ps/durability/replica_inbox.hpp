// replica_inbox.hpp -- the replica's end of the replication stream: applies records in the order sent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "protocol/push_format.hpp"
#include "protocol/replica_format.hpp"
#include "transport/fabric.hpp"

namespace capstan::ps {

/// Used by the replica's thread only.
class ReplicaInbox {
 public:
  /// Executes a request of rank `from` in the same way as the ps. Throws Error if the request is refused.
  using Replay = std::function<void(std::uint16_t type, int from, transport::Bytes request)>;
  /// Sends the progress to the ps. If `busy` is set, the message must leave before the function returns.
  using ReportProgress = std::function<void(const protocol::ReplicaProgress&)>;

  ReplicaInbox(protocol::PushSink& sink, Replay replay, ReportProgress report_progress)
      : sink_(sink), replay_(std::move(replay)), report_progress_(std::move(report_progress)) {}

  /// Queues the records of a kReplicate message; called inside progress().
  void receive(const transport::Message& message);
  /// Applies the records received so far and reports the progress. Returns true if there were any. Throws
  /// Error(data_loss) at a record that cannot be applied or that follows a missing one: it and all later ones
  /// are neither applied nor acknowledged, and this replica has to exit.
  bool apply_some();
  /// Ends the rank's pushes. A push of which only a part has arrived stays incomplete.
  void close(int rank);
  /// Applies all received records and ends all pushes, since the ps is dead.
  void end();

 private:
  using Records = std::vector<std::byte>;  // of one message

  void apply_all(const Records& records);
  void apply(const protocol::ReplicaRecord& record, transport::Bytes body);
  void apply_push(transport::Bytes entry);

  protocol::PushSink& sink_;
  Replay replay_;
  ReportProgress report_progress_;
  std::deque<Records> received_;
  std::map<int, protocol::UnfinishedPush> unfinished_;  // by rank
  protocol::ReplicaProgress progress_;
};

}  // namespace capstan::ps
