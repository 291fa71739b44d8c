// merge_traces.hpp -- one timeline of the traces of all ranks, by one clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>

namespace capstan::io {

/// Nanoseconds that a rank's clock is ahead of the coordinator's, and how far that may be wrong.
struct ClockOffset {
  std::int64_t ahead = 0;
  std::int64_t error = 0;
};

/// RUN_DIR/trace/clocks.json. Throws Error when it cannot be written; nothing where it is not there.
void write_clocks(const std::filesystem::path& folder, const std::map<int, ClockOffset>& clocks);
std::map<int, ClockOffset> read_clocks(const std::filesystem::path& folder);

std::uint64_t bytes_of_traces(const std::filesystem::path& folder);

struct MergedTrace {
  std::filesystem::path path;
  std::uint64_t events = 0;
  int ranks = 0;
};
/// Writes RUN_DIR/trace.json from the rank-*.json of RUN_DIR/trace, with the time of the first event as 0.
/// Lines that are cut off are left out. Throws Error: not_found when there are none.
MergedTrace merge_traces(const std::filesystem::path& run_dir);

}  // namespace capstan::io
