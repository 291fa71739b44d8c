// sidecar_evaluator.cpp -- polls a directory for checkpoints until the job ends or a limit is reached.
#include "capstan/sidecar_evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/exit_codes.hpp"
#include "base/log.hpp"
#include "base/stacks.hpp"
#include "cluster/membership/coordinator_watch.hpp"
#include "cluster/runtime.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace {

using Clock = std::chrono::steady_clock;

void check(const SidecarEvaluatorOptions& options) {
  if (options.checkpoint_dir.empty()) {
    throw Error(Code::invalid_argument, "SidecarEvaluator: checkpoint_dir is empty");
  }
  const auto refuse = [](const char* what, std::int64_t value, int least) {
    throw Error(Code::invalid_argument,
                fmt::format("SidecarEvaluator: {} is {}; it must be {} or more", what, value, least));
  };
  if (options.max_evaluations < 0) refuse("max_evaluations", options.max_evaluations, 0);
  if (options.poll_interval.count() < 1) refuse("poll_interval", options.poll_interval.count(), 1);
  if (options.directory_timeout.count() < 0)
    refuse("directory_timeout", options.directory_timeout.count(), 0);
  if (options.timeout.count() < 0) refuse("timeout", options.timeout.count(), 0);
}

bool directory_exists(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::is_directory(directory, error);
}

}  // namespace

/// Detects the end of the evaluator's job, and reconnects to a restarted coordinator.
struct SidecarEvaluator::Job {
  explicit Job(std::shared_ptr<cluster::Runtime> of) : runtime(std::move(of)), watch(*runtime) {
    transport::Fabric& fabric = runtime->control();
    fabric.on_message(transport::kHello, [](const transport::Message&) {});
    fabric.on_message(transport::kDumpStacks, [](const transport::Message&) { write_stacks(); });
    fabric.on_message(transport::kShutdown, [this](const transport::Message&) { over = true; });
    fabric.on_failure([this](transport::Peer& peer) {
      if (!over && runtime->member(peer.rank()).role == Role::coordinator) watch.on_connection_lost(peer);
    });
    fabric.on_message(transport::kCoordinatorReturned,
                      [this](const transport::Message& message) { watch.on_announcement(message); });
    runtime->control_peer(runtime->member(Role::coordinator, 0)).send(transport::kHello, {});
  }
  ~Job() { runtime->control().remove_handlers(); }
  /// Returns true if the job has ended or its coordinator is lost. Not called inside progress().
  bool ended() {
    if (watch.has_announcement()) {
      (void)watch.reconnect();
      watch.acknowledge();
    }
    return over || !watch.stop_reason().empty();
  }

  std::shared_ptr<cluster::Runtime> runtime;
  cluster::CoordinatorWatch watch;
  bool over = false;
};

SidecarEvaluator::SidecarEvaluator(SidecarEvaluatorOptions options) : options_(std::move(options)) {
  check(options_);
  step_ = options_.after_step;
}

SidecarEvaluator::SidecarEvaluator(const Cluster& cluster, SidecarEvaluatorOptions options)
    : SidecarEvaluator(std::move(options)) {
  if (cluster.role() != Role::evaluator) {
    throw Error(Code::failed_precondition,
                cluster.name() + " is not an evaluator: start the job with --evaluator");
  }
  log::set_rank_tag(cluster.runtime()->log_tag());
  job_ = std::make_unique<Job>(cluster.runtime());
}

SidecarEvaluator::~SidecarEvaluator() = default;

/// Evaluates new checkpoints; returns true if there were any.
bool SidecarEvaluator::evaluate_new(const Evaluate& evaluate) {
  std::vector<io::CheckpointEntry> fresh = io::list_checkpoints(options_.checkpoint_dir);
  std::erase_if(fresh, [this](const io::CheckpointEntry& entry) { return entry.step <= step_; });
  if (options_.newest_only && fresh.size() > 1) fresh.erase(fresh.begin(), fresh.end() - 1);
  for (const io::CheckpointEntry& entry : fresh) {
    step_ = entry.step;
    std::optional<SavedCheckpoint> checkpoint;
    try {
      checkpoint.emplace(entry.path);
    } catch (const Error& error) {
      if (error.code() != Code::data_loss && error.code() != Code::not_found) throw;
      if (!directory_exists(entry.path)) {
        log::warn("{} was deleted before it could be evaluated: keep more checkpoints", entry.path.string());
      } else {
        log::warn("skipped damaged checkpoint {}: {}", entry.path.filename().string(), error.what());
      }
      continue;
    }
    try {
      evaluate(*checkpoint);
    } catch (const Error& error) {
      if (error.code() != Code::data_loss || directory_exists(entry.path)) throw;
      log::warn("{} was deleted while it was evaluated: keep more checkpoints", entry.path.string());
      continue;
    }
    ++evaluations_;
    if (evaluated_last()) break;
  }
  return !fresh.empty();
}

bool SidecarEvaluator::evaluated_last() const {
  if (evaluations_ == 0) return false;
  return (options_.max_evaluations > 0 && evaluations_ >= options_.max_evaluations) ||
         (options_.last_step && step_ >= *options_.last_step);
}

/// Waits for the poll interval, or until the job has ended.
void SidecarEvaluator::pause() {
  if (!job_) return std::this_thread::sleep_until(deadline_after(options_.poll_interval));
  transport::progress_until(job_->runtime->control(), transport::deadline_in(options_.poll_interval),
                            [this] { return job_->ended(); });
}

int SidecarEvaluator::start(const Evaluate& evaluate) {
  const auto began = Clock::now();
  auto last_new = began;
  bool seen = false;
  while (true) {
    // Checked before evaluate_new(): if the job has ended, all its checkpoints exist, and evaluate_new()
    // finds the last ones.
    if (job_) job_->runtime->control().progress();
    const bool ended = job_ && job_->ended();
    seen = seen || directory_exists(options_.checkpoint_dir);
    if (!seen && (ended || Clock::now() >= deadline_after(options_.directory_timeout, began))) {
      throw Error(
          Code::not_found,
          fmt::format(
              "the evaluator found no directory {} {}; check that the job saves its checkpoints there, and "
              "that {} mounts that file system",
              options_.checkpoint_dir.string(),
              ended ? "until the job ended" : fmt::format("within {} ms", options_.directory_timeout.count()),
              cluster::host_name()));
    }
    if (evaluate_new(evaluate)) last_new = Clock::now();
    if (evaluated_last()) return 0;
    if (ended) break;
    if (options_.timeout.count() > 0 && Clock::now() >= deadline_after(options_.timeout, last_new)) {
      log::warn("no new checkpoint in {} for {} ms; the evaluator ends", options_.checkpoint_dir.string(),
                options_.timeout.count());
      return 0;
    }
    pause();
  }
  if (job_->watch.stop_reason().empty()) return 0;
  log::error("{}; the evaluator ends", job_->watch.stop_reason());
  return kExitLostRank;
}

}  // namespace capstan
