// training_output.cpp -- console lines and the summary file of the training programs.
#include "launch/training_output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/file_size_signal.hpp"
#include "capstan/error.hpp"
#include "launch/exit_codes.hpp"
#include "launch/launcher_rank.hpp"
#include "launch/units.hpp"

namespace capstan::launch {
namespace {

Error not_writable(const std::string& path) {
  return Error(Code::permission_denied, "cannot write " + path + "; give --summary a writable path");
}

}  // namespace

void check_summary_path(const std::string& path) {
  if (path.empty() || launcher_rank() != 0) return;
  if (!std::ofstream(path, std::ios::app)) throw not_writable(path);
}

void write_summary(const std::string& path, const nlohmann::json& summary) {
  if (path.empty()) return;
  const FileSizeSignalBlock block;
  std::ofstream file(path);
  file << summary.dump(2) << "\n";
  file.close();
  if (!file) throw not_writable(path);
}

nlohmann::json cluster_json(const Cluster& cluster) {
  return {{"embedded", cluster.embedded()},
          {"ps", cluster.count(Role::ps)},
          {"workers", cluster.count(Role::worker)}};
}

void announce(const Cluster& cluster, const Settings& settings) {
  if (cluster.embedded()) {
    fmt::print(stderr, "capstan: all roles in this process; start a cluster with mpirun -np 5 and --ps 2\n");
  } else if (const std::string& run_dir = settings.text("run-dir"); !run_dir.empty()) {
    fmt::print(stderr, "capstan: to watch the job: capstan top {}\n", run_dir);
  } else {
    fmt::print(stderr, "capstan: to watch the job with capstan top, set --run-dir\n");
  }
  const std::string& signal = settings.text("save-signal");
  if (settings.text("checkpoint-dir").empty() || signal == "off") {
    fmt::print(
        stderr, "capstan: to stop it, press Ctrl-C; {}\n",
        signal == "off" ? "--save-signal off saves nothing" : "without --checkpoint-dir nothing is saved");
  } else {
    fmt::print(stderr, "capstan: to save and stop it: kill -{} {}, or Ctrl-C under capstan run\n", signal,
               ::getpid());
  }
}

void print_rate(std::string_view unit, double count, double seconds, double evaluation_seconds,
                double checkpoint_seconds) {
  fmt::print("trained {} {} in {}: {} (evaluation {}, checkpoints {})\n", short_count(count), unit,
             seconds_text(seconds), rate_text(seconds > 0 ? count / seconds : 0, unit),
             seconds_text(evaluation_seconds), seconds_text(checkpoint_seconds));
}

int requeue(const std::string& why, const std::string& checkpoint) {
  fmt::print(stderr, "capstan: {}: saved {}; continue with the same command and --resume\n", why, checkpoint);
  return static_cast<int>(Exit::requeue);
}

}  // namespace capstan::launch
