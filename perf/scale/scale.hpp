// scale.hpp -- parts of perf_scale.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan::perf {

struct Options;
struct Session;
class Report;

struct ScaleOptions {
  std::vector<std::uint64_t> rings = {1, 8, 64, 512};
  std::vector<std::uint64_t> connections = {1, 8, 64};
  std::int64_t steps = 20;         // per worker
  std::int64_t compute_us = 1000;  // per step
  std::int64_t batch = 64;         // rows per step
};

/// Measures, in this process, the cost of polling empty rings, and the latency of a push into one of them.
void measure_polling(const ScaleOptions& scale, const Options& options, Report& report);
/// Measures, in this process, time, memory and file descriptors of connections over UCX.
void measure_connections(const ScaleOptions& scale, const Options& options, Report& report);
/// Measures the start, the first push and the memory of the ranks of a job. REQUIRES: a cluster of ranks.
void measure_ranks(const Session& session);
/// Measures paced training steps of all workers at once. REQUIRES: a cluster of ranks.
void measure_steps(const ScaleOptions& scale, const Session& session);

}  // namespace capstan::perf
