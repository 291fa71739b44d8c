// rank_log.cpp -- which file it is.
#include "cluster/rank_log.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/log.hpp"
#include "cluster/runtime.hpp"

namespace capstan::cluster {

std::shared_ptr<Runtime> with_log_file(std::shared_ptr<Runtime> runtime) {
  const Settings& settings = runtime->settings();
  const std::string& joined = settings.text("join");
  const std::string& run_dir = joined.empty() ? settings.text("run-dir") : joined;
  if (run_dir.empty()) return runtime;
  const Member& self = runtime->self();
  const bool again = runtime->started_again() && !runtime->came_late();
  const int rank = again ? runtime->member(self.role, self.index).rank : self.rank;
  log::also_to(std::filesystem::path(run_dir) / "log" / fmt::format("rank-{:05}.log", rank), rank);
  return runtime;
}

}  // namespace capstan::cluster
