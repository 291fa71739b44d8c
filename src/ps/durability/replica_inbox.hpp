// replica_inbox.hpp -- the replica's end of the stream: records, applied in the order in which they were
// told.
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

class ReplicaInbox {
 public:
  /// Does what a ps does when `from` makes that call; throws Error where it is refused.
  using Call = std::function<void(std::uint16_t type, int from, transport::Bytes request)>;
  /// Says how far it has come; it is to leave at once where it is busy.
  using Progress = std::function<void(const protocol::ReplicaProgress&)>;

  ReplicaInbox(protocol::PushSink& sink, Call call, Progress progress)
      : sink_(sink), call_(std::move(call)), progress_(std::move(progress)) {}

  /// A kReplicate message; runs inside progress().
  void receive(const transport::Message& message);
  /// Applies what has come, and says so; true when there was something.
  bool apply_some();
  /// The rank's pushes end here: one that is not whole stays a part.
  void close(int rank);
  /// All that has come is applied, and no push goes on: the ps is dead.
  void end();

 private:
  struct Record {
    protocol::ReplicaRecord head;
    protocol::PushHeader push;
    std::vector<std::byte> payload;
  };

  void apply(const Record& record);

  protocol::PushSink& sink_;
  Call call_;
  Progress progress_;
  std::deque<Record> records_;
  std::map<int, protocol::UnfinishedPush> unfinished_;  // by rank
  protocol::ReplicaProgress done_;
};

}  // namespace capstan::ps
