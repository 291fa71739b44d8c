// report.hpp -- the metrics that ranks report to the coordinator (docs/metrics.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/traffic.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::protocol {

/// Header of the coordinator's kReport. Times are nanoseconds of a steady clock.
struct ReportRequest {
  std::int64_t asked = 0;  // time of the request
  std::int64_t last = 0;   // 1: the job ends; the rank first writes the rest of its trace
};

/// Header of the reply. The payload is a WorkerReport or a PsReport.
struct ReportHeader {
  std::int64_t asked = 0;  // as in the request
  std::int64_t now = 0;    // time of the reply, on the rank's own clock
};

/// Returns the header of a reply that is sent now.
inline ReportHeader answer_to(const ReportRequest& request) {
  return {request.asked, std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)};
}

struct WorkerReport {
  cluster::PackedCalls pull;
  cluster::PackedCalls push;
  cluster::PackedCalls flush;
  cluster::KeyCounts keys = {};
  std::uint64_t held = 0;  // queued functions
  cluster::ProcessUse use;
};

/// The shard with the most rows pushed and sent.
struct HottestShard {
  std::string variable;  // "": none
  std::uint32_t shard = 0;
  std::uint64_t rows = 0;
};

struct GroupReport {
  std::uint32_t group = 0;
  GroupClocks clocks;
};

/// A shard of a dynamic table.
struct TableReport {
  std::string table;
  TableStatistics statistics;
};

struct PsReport {
  PsStatistics statistics;
  std::uint64_t shards = 0;
  HottestShard hottest;
  std::vector<GroupReport> groups;  // without asynchronous groups
  std::vector<TableReport> tables;
  cluster::ProcessUse use;
};

}  // namespace capstan::protocol
