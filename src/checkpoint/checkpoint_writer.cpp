// checkpoint_writer.cpp -- requests the files of all ps, waits for them, and publishes the checkpoint.
#include "checkpoint/checkpoint_writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "base/log.hpp"
#include "io/events/trace_file.hpp"
#include "io/hdf5/layout.hpp"
#include "strategy/disk_timeout.hpp"
#include "strategy/ps_calls.hpp"

namespace capstan::checkpoint {
namespace {

/// Maximum number of shards of one variable on one ps.
int max_shards_of_one(const strategy::Strategy& strategy) {
  int max = 1;
  for (const auto& variable : strategy.variables().all()) {
    std::map<std::int32_t, int> shards_on;
    for (const auto& location : variable->descriptor.shards) max = std::max(max, ++shards_on[location.ps]);
  }
  return max;
}

/// Holds the checkpointed states, and with `all` also all closures, until destruction.
class Hold {
 public:
  using States = std::map<std::string, std::shared_ptr<strategy::CheckpointedState>>;
  Hold(const States& states, const strategy::Strategy& strategy, bool all) {
    try {
      for (const auto& [name, state] : states) {
        state->hold();
        releases_.emplace_back([state = state] { state->release(); });
      }
      const auto scheduler = strategy.control().scheduler();
      if (!all || !scheduler) return;
      scheduler->hold();
      releases_.emplace_back([scheduler] { scheduler->release(); });
    } catch (...) {
      release();
      throw;
    }
  }
  ~Hold() { release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  void release() noexcept {
    for (const auto& release : releases_) release();
    releases_.clear();
  }
  std::vector<std::function<void()>> releases_;
};

/// Returns a mark that differs from those of all other saves of all jobs.
std::uint64_t new_mark() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

/// A resumed job may start before the last process of its killed predecessor has ended.
constexpr std::chrono::seconds kLockTimeout{3};

std::shared_ptr<const io::DirectoryLock> lock_directory(const io::CheckpointDirectory& directory) {
  directory.check_writable();
  return io::DirectoryLock::take(directory.path(), kLockTimeout);
}

}  // namespace

CheckpointWriter::CheckpointWriter(strategy::Strategy& strategy, CheckpointOptions options)
    : strategy_(strategy),
      options_(std::move(options)),
      fast_(strategy.runtime()->settings().text("checkpoint-fast-dir"), options_.directory),
      lock_(lock_directory(directory())) {
  if (options_.settings.empty()) options_.settings = strategy.runtime()->settings().to_json();
}

CheckpointWriter::~CheckpointWriter() { fast_.close(); }

io::CheckpointDirectory CheckpointWriter::directory() const {
  return io::CheckpointDirectory(options_.directory, options_.max_to_keep, options_.keep_every_n_hours);
}

CheckpointWriter::Save CheckpointWriter::begin(std::int64_t step, const std::string& user_state,
                                               const SaveOptions& options) {
  wait_for_earlier_save();
  const auto states = strategy_.states().all();
  const Hold hold(states, strategy_, options.consistency == SaveConsistency::global);
  Save save{.step = step,
            .path = options_.directory / io::checkpoint_name(step),
            .publish = {.user_state = user_state, .settings = options_.settings}};
  choose_rows(save, options.incremental);
  for (const auto& [name, state] : states) save.publish.positions.emplace(name, state->position());
  strategy_.context().use_client()->flush();
  // read_before() repeats the request if a ps dies and is restarted or replaced.
  auto counters = strategy_.counters().read_before([&] { request_files(step, save.rows); });
  save.publish.counters = strategy_.counters().by_name(counters);
  save.for_spares = {.directory = std::filesystem::absolute(save.path).string(),
                     .step = step,
                     .variables = strategy_.variables().ids(),
                     .counters = std::move(counters)};
  save.deadline = transport::deadline_in(strategy::disk_timeout(strategy_));
  return save;
}

void CheckpointWriter::wait_for_earlier_save() {
  const auto timeout = strategy::disk_timeout(strategy_);
  const bool ended = strategy_.control().wait_until(
      [this] { return !strategy_.save_progress().in_progress(); }, transport::deadline_in(timeout));
  if (ended) return;
  throw Error(Code::deadline_exceeded,
              fmt::format("waited {} ms for an earlier save of this program to end", timeout.count()));
}

void CheckpointWriter::choose_rows(Save& save, bool incremental) {
  incremental_ = incremental_ || incremental;
  if (const auto base = incremental ? base_for(save.step) : nullptr) {
    save.rows.since = base->mark;
    save.publish.base = base->base;
  } else if (incremental_) {
    save.rows.mark = new_mark();
    base_.reset();  // each ps drops the previous mark
  }
}

void CheckpointWriter::lock_again_if_replaced() {
  if (lock_->is_current()) return;
  log::warn(
      "checkpoint directory {} and its checkpoints were removed or replaced while this job ran; locking the "
      "directory again",
      options_.directory.string());
  lock_ = lock_directory(directory());
}

void CheckpointWriter::request_files(std::int64_t step, const protocol::SavedRows& rows) {
  lock_again_if_replaced();  // before removing incomplete saves, which may belong to another job
  const std::string path = std::filesystem::absolute(directory().begin(step)).string();
  const io::FastLocation fast = fast_.begin(step);
  const auto& runtime = strategy_.runtime();
  const std::uint64_t number = strategy_.save_progress().begin(runtime->count(Role::ps));
  try {
    strategy::ask_every_ps(*strategy_.context().use_client(), transport::kSaveShards,
                           to_bytes(protocol::SaveShards{number, path, max_shards_of_one(strategy_), rows,
                                                         fast.directory.string(), fast.owner}),
                           runtime->wait_timeout(), "start its part of a checkpoint");
  } catch (...) {
    strategy_.save_progress().give_up();
    throw;
  }
}

std::filesystem::path CheckpointWriter::finish(Save& save) {
  if (fast_) publish_fast(save);
  wait_for_files(save);
  const std::vector<io::PartReport> files = strategy_.save_progress().take_parts();
  lock_->require_current();
  auto path = directory().publish(save.step, files, save.publish);
  strategy_.contents().set_checkpoint(std::move(save.for_spares));
  if (save.rows.mark != 0) note_base(save, path);
  fast_.clear();
  const auto now = std::chrono::steady_clock::now();
  strategy_.save_times().add_saved(now - save.began);
  if (io::TraceFile* trace = strategy_.runtime()->trace(); trace != nullptr)
    trace->span("checkpoint", "checkpoint", save.began, now, {{"step", save.step}});
  return path;
}

/// Publishes once all files are on the fast level, even if one of them later does not reach the directory.
void CheckpointWriter::publish_fast(const Save& save) {
  const strategy::SaveProgress& progress = strategy_.save_progress();
  (void)strategy_.control().wait_until([&progress] { return progress.fast_settled(); }, save.deadline);
  if (const auto files = progress.fast_parts()) (void)fast_.publish(save.step, *files, save.publish);
}

void CheckpointWriter::wait_for_files(const Save& save) {
  strategy::SaveProgress& progress = strategy_.save_progress();
  if (strategy_.control().wait_until([&progress] { return progress.settled(); }, save.deadline)) return;
  std::vector<std::string> names;
  for (const int ps : progress.missing()) names.push_back(strategy_.runtime()->member(Role::ps, ps).name());
  progress.give_up();
  throw Error(Code::deadline_exceeded,
              fmt::format("waited {} ms for {} to write its part of a checkpoint",
                          strategy::disk_timeout(strategy_).count(), fmt::join(names, " and ")));
}

void CheckpointWriter::note_base(const Save& save, const std::filesystem::path& path) {
  try {
    base_ = std::make_shared<FullSave>(
        FullSave{save.rows.mark, save.step, {path.filename().string(), io::manifest_checksum(path)}});
  } catch (const Error& error) {
    log::warn("the next checkpoint will be a full one: {}", error.what());  // this one is complete
  }
}

std::shared_ptr<const CheckpointWriter::FullSave> CheckpointWriter::base_for(std::int64_t step) const {
  if (base_ == nullptr || base_->step == step) return nullptr;
  try {
    (void)io::find_base(options_.directory / io::checkpoint_name(step), base_->base);
    return base_;
  } catch (const Error& error) {
    log::warn("saving a full checkpoint for step {}: {}", step, error.what());
    return nullptr;
  }
}

}  // namespace capstan::checkpoint
