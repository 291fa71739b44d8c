// report.hpp -- what ranks say of themselves when the coordinator asks for it: docs/metrics.md.
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
  std::int64_t asked = 0;
  std::int64_t last = 0;  // 1: the job ends; what a rank has kept back of its trace is to be written first
};

/// Header of the answer. Its payload is a WorkerReport or a PsReport.
struct ReportHeader {
  std::int64_t asked = 0;  // as it was told
  std::int64_t now = 0;    // of the rank's own clock
};

/// The header of an answer that is sent now.
inline ReportHeader answer_to(const ReportRequest& request) {
  return {request.asked, std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)};
}

struct WorkerReport {
  cluster::PackedCalls pull;
  cluster::PackedCalls push;
  cluster::PackedCalls flush;
  std::uint64_t held = 0;  // functions that it has and has not begun
  cluster::ProcessUse use;
};

/// The shard of which the most rows have been pushed and sent.
struct HottestShard {
  std::string variable;  // "": none
  std::uint32_t shard = 0;
  std::uint64_t rows = 0;
};

struct GroupReport {
  std::uint32_t group = 0;
  GroupClocks clocks;
};

struct PsReport {
  PsStatistics statistics;
  std::uint64_t shards = 0;
  HottestShard hottest;
  std::vector<GroupReport> groups;  // that are not asynchronous
  cluster::ProcessUse use;
};

}  // namespace capstan::protocol
