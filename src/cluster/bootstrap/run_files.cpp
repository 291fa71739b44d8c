// run_files.cpp -- chooses the names of the files, by rank.
#include "cluster/bootstrap/run_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "cluster/runtime.hpp"

namespace capstan::cluster {

std::shared_ptr<Runtime> with_run_files(std::shared_ptr<Runtime> runtime) {
  const Settings& settings = runtime->settings();
  const std::string& joined = settings.text("join");
  const std::filesystem::path run_dir = joined.empty() ? settings.text("run-dir") : joined;
  const bool trace = settings.flag("trace");
  if (run_dir.empty()) {
    if (!trace) return runtime;
    throw Error(Code::invalid_argument,
                "--trace: traces go into the run directory; give --run-dir DIR as well");
  }
  const Member& self = runtime->self();
  const bool restarted = runtime->joins_after_start() && !runtime->joins_late();
  const int rank = restarted ? runtime->member(self.role, self.index).rank : self.rank;
  log::also_to(run_dir / "log" / fmt::format("rank-{:05}.log", rank), rank);
  if (!trace) return runtime;
  runtime->trace_to(run_dir / "trace");
  for (const auto& rank_of_this_process : runtime->embedded())
    rank_of_this_process->trace_to(run_dir / "trace");
  return runtime;
}

}  // namespace capstan::cluster
