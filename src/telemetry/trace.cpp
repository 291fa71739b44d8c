// trace.cpp -- when to put traces together.
#include "telemetry/trace.hpp"

#include <filesystem>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "io/events/trace_file.hpp"

namespace capstan::telemetry {
namespace {

/// The end of the job does not wait for more: a second or two of reading and writing.
constexpr std::uint64_t kMostBytes = 256 << 20;

}  // namespace

void end_trace(cluster::Runtime& runtime, const std::map<int, io::ClockOffset>& clocks) noexcept {
  if (runtime.trace() == nullptr) return;
  try {
    runtime.trace()->flush();
    const std::filesystem::path run_dir = runtime.settings().text("run-dir");
    io::write_clocks(run_dir / "trace", clocks);
    const std::uint64_t bytes = io::bytes_of_traces(run_dir / "trace");
    if (bytes > kMostBytes) {
      log::info("the traces of all ranks have {} MB; `capstan trace {}` makes one timeline of them",
                bytes >> 20, run_dir.string());
      return;
    }
    const io::MergedTrace merged = io::merge_traces(run_dir);
    log::info("{}: {} events of {} ranks; open it at https://ui.perfetto.dev", merged.path.string(),
              merged.events, merged.ranks);
  } catch (const std::exception& error) {
    log::warn("no timeline of all ranks: {}", error.what());
  }
}

}  // namespace capstan::telemetry
