// shard_placement.cpp -- round robin, by bytes, or colocated.
#include "strategy/shard_placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "capstan/error.hpp"

namespace capstan::strategy {

ShardPlacement::ShardPlacement(int ps_count, Partitioner partitioner, Placement placement)
    : partitioner_(std::move(partitioner)), placement_(placement) {
  state_.loads.resize(static_cast<std::size_t>(ps_count));
}

std::uint64_t ShardPlacement::shard_count(const std::string& name, DType dtype, const Shape& shape) const {
  if (!partitioner_ || shape.empty() || colocated_ >= 0) return 1;
  const std::vector<std::int64_t> parts = partitioner_(shape, dtype).axes;
  const bool only_axis_0 = std::all_of(parts.begin() + (parts.empty() ? 0 : 1), parts.end(),
                                       [](std::int64_t n) { return n == 1; });
  if (parts.empty() || parts[0] < 1 || !only_axis_0) {
    throw Error(
        Code::invalid_argument,
        fmt::format("variable_partitioner returned [{}] for variable \"{}\" of shape {}; expected a number "
                    "of shards for each axis, 1 or more for the first and 1 for the others",
                    fmt::join(parts, ", "), name, to_string(shape)));
  }
  if (parts[0] == 1) return 1;
  if (shape[0] == 0) {
    throw Error(Code::invalid_argument,
                fmt::format("variable_partitioner returned {} shards for variable \"{}\" of shape {}, which "
                            "has no rows; expected 1",
                            parts[0], name, to_string(shape)));
  }
  return static_cast<std::uint64_t>(std::min(parts[0], shape[0]));
}

int ShardPlacement::next_ps(std::uint64_t bytes) {
  std::vector<Load>& loads = state_.loads;
  int ps = colocated_;
  if (ps < 0 && placement_ == Placement::by_bytes) {
    const auto smallest = std::min_element(loads.begin(), loads.end(),
                                           [](const Load& a, const Load& b) { return a.bytes < b.bytes; });
    ps = static_cast<int>(smallest - loads.begin());
  } else if (ps < 0) {
    ps = state_.next_ps++ % static_cast<int>(loads.size());
  }
  Load& load = loads[static_cast<std::size_t>(ps)];
  load.bytes += bytes;
  ++load.shards;
  return ps;
}

}  // namespace capstan::strategy
