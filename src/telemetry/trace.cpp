// trace.cpp -- merges the traces of all ranks at the end of a job.
#include "telemetry/trace.hpp"

#include <filesystem>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "io/events/trace_file.hpp"

namespace capstan::telemetry {
namespace {

/// Larger traces are not merged at the end of the job, to bound its delay to a second or two.
constexpr std::uint64_t kMaxBytes = 256 << 20;

}  // namespace

void end_trace(cluster::Runtime& runtime, const std::map<int, io::ClockOffset>& clocks) noexcept {
  if (runtime.trace() == nullptr) return;
  try {
    runtime.trace()->flush();
    const std::filesystem::path run_dir = runtime.settings().text("run-dir");
    io::write_clocks(run_dir / "trace", clocks);
    const std::uint64_t bytes = io::bytes_of_traces(run_dir / "trace");
    if (bytes > kMaxBytes) {
      log::info(
          "the traces of all ranks have {} MB and are not merged; run `capstan trace {}` for one timeline",
          bytes >> 20, run_dir.string());
      return;
    }
    const io::MergedTrace merged = io::merge_traces(run_dir);
    log::info("{}: {} events of {} ranks; open it at https://ui.perfetto.dev", merged.path.string(),
              merged.events, merged.ranks);
  } catch (const std::exception& error) {
    log::warn("cannot merge the traces of all ranks: {}", error.what());
  }
}

}  // namespace capstan::telemetry
