// scale.hpp -- the parts of perf_scale.
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
};

/// What a ps pays for rings that are empty, and how soon it sees the one that is not. In this process.
void measure_polling(const ScaleOptions& scale, const Options& options, Report& report);
/// What connections over UCX cost in time, memory and file descriptors. In this process.
void measure_connections(const ScaleOptions& scale, const Options& options, Report& report);
/// What the ranks of a job cost: their start, their first push, their memory. Needs a cluster of ranks.
void measure_ranks(const Session& session);

}  // namespace capstan::perf
