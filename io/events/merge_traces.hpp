// merge_traces.hpp -- merges the traces of all ranks into one timeline on the coordinator's clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>

namespace capstan::io {

/// Offset of a rank's clock from the coordinator's, in nanoseconds.
struct ClockOffset {
  std::int64_t ahead = 0;
  std::int64_t error = 0;  // bound on the error of `ahead`
};

/// Writes clocks.json to `directory`, which is RUN_DIR/trace. Throws Error if it cannot be written.
void write_clocks(const std::filesystem::path& directory, const std::map<int, ClockOffset>& clocks);
/// Reads clocks.json, by rank; empty if it is missing or not an object.
std::map<int, ClockOffset> read_clocks(const std::filesystem::path& directory);

std::uint64_t bytes_of_traces(const std::filesystem::path& directory);

struct MergedTrace {
  std::filesystem::path path;
  std::uint64_t events = 0;
  int ranks = 0;
};
/// Merges RUN_DIR/trace/rank-*.json into RUN_DIR/trace.json; the first event has time 0. Skips truncated
/// lines. Throws Error(not_found) if there are no traces.
MergedTrace merge_traces(const std::filesystem::path& run_dir);

}  // namespace capstan::io
