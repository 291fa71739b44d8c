// checkpoint_manager.cpp -- every ps writes its part; the coordinator checks and publishes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "base/log.hpp"
#include "capstan/checkpoint.hpp"
#include "io/directory_lock.hpp"
#include "io/events/trace_file.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/fast_level.hpp"
#include "io/hdf5/layout.hpp"
#include "protocol/ps_messages.hpp"
#include "strategy/disk_patience.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

/// The most shards of one variable that lie on one ps.
int most_shards_of_one(const strategy::Strategy& strategy) {
  int most = 1;
  for (const auto& variable : strategy.variables()) {
    std::map<std::int32_t, int> on;
    for (const auto& place : variable->descriptor.shards) most = std::max(most, ++on[place.ps]);
  }
  return most;
}

/// What is under way of the states, or of all functions, ends, and nothing of them begins while it lives.
class Hold {
 public:
  using States = std::map<std::string, std::shared_ptr<checkpoint::SavedState>>;
  Hold(const States& states, const strategy::Strategy& strategy, bool all) {
    try {
      for (const auto& [name, state] : states) {
        state->hold();
        releases_.emplace_back([state = state] { state->release(); });
      }
      const auto scheduler = strategy.scheduler();
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

io::CheckpointDirectory directory_of(const CheckpointOptions& options) {
  return io::CheckpointDirectory(options.directory, options.max_to_keep, options.keep_every_n_hours);
}

/// Not that of any other save, whoever made it.
std::uint64_t new_mark() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

/// A job that goes on where another was killed may come before the last process of that one has gone.
constexpr std::chrono::seconds kForAnotherJobToEnd{3};

/// Creates the directory where it is missing, and locks it.
std::shared_ptr<const io::DirectoryLock> lock_directory(const CheckpointOptions& options) {
  directory_of(options).check_writable();
  return io::DirectoryLock::take(options.directory, kForAnotherJobToEnd);
}

/// The public header knows no type of io.
const io::DirectoryLock& lock_in(const std::shared_ptr<const void>& lock) {
  return *static_cast<const io::DirectoryLock*>(lock.get());
}

}  // namespace

struct CheckpointManager::Whole {
  std::uint64_t mark = 0;  // see protocol::SavedRows
  std::int64_t step = 0;
  io::Base base = {};
};

/// One save, from the moment that every ps has its shards.
struct CheckpointManager::Saving {
  std::int64_t step = 0;
  io::PublishOptions told = {};
  std::filesystem::path folder = {};  // where it will be
  std::optional<strategy::PsContents::Checkpoint> for_spares = {};
  protocol::SavedRows rows = {};
  transport::Deadline deadline = {};
  SaveSchedule::Clock::time_point began = SaveSchedule::Clock::now();
};

struct CheckpointManager::Background {
  std::filesystem::path folder;
  std::exception_ptr error;
  std::jthread thread;  // last: it sets the error
};

CheckpointManager::CheckpointManager(ParameterServerStrategy& strategy, CheckpointOptions options)
    : LastRestored(strategy),
      options_(std::move(options)),
      schedule_(options_.interval, 0, SaveSchedule::Clock::now()) {
  if (options_.settings.empty())
    options_.settings = strategy.implementation().runtime()->settings().to_json();
  fast_ = std::make_shared<io::FastLevel>(
      strategy.implementation().runtime()->settings().text("checkpoint-fast-dir"), options_.directory);
  lock_ = lock_directory(options_);
}

CheckpointManager::~CheckpointManager() {
  try {
    wait();
  } catch (const std::exception& error) {
    log::error("a checkpoint was not saved: {}", error.what());
  }
  fast_->leave();
}

CheckpointManager::Saving CheckpointManager::begin(std::int64_t step, const std::string& user_state,
                                                   const SaveOptions& options) {
  strategy::Strategy& strategy = strategy_.implementation();
  const checkpoint::SaveUnderWay& save = strategy.save_under_way();
  if (!strategy.wait_for_control([&save] { return !save.under_way(); },
                                 transport::deadline_in(strategy::disk_patience(strategy)))) {
    throw Error(Code::deadline_exceeded, fmt::format("waited {} ms for another save of this program to end",
                                                     strategy::disk_patience(strategy).count()));
  }
  const auto states = strategy.states();
  const Hold hold(states, strategy, options.consistency == SaveConsistency::global);
  Saving saving{.step = step, .told = {.user_state = user_state, .settings = options_.settings}};
  increments_ = increments_ || options.incremental;
  if (const auto whole = options.incremental ? whole_for(step) : nullptr) {
    saving.rows.since = whole->mark;
    saving.told.base = whole->base;
  } else if (increments_) {
    saving.rows.mark = new_mark();
    whole_.reset();  // ps forget the mark before
  }
  for (const auto& [name, state] : states) saving.told.positions.emplace(name, state->position());
  strategy.context().client().flush();
  io::CheckpointDirectory directory = directory_of(options_);
  saving.folder = directory.path() / io::checkpoint_name(step);
  // Anew where a ps has died and is back, or a spare has its place.
  auto counters = strategy.at_rest([&] {
    // Immediately before leftovers are removed there, which may be another job's.
    if (!lock_in(lock_).is_current()) {
      log::warn("{} was removed or replaced while this job ran, with its checkpoints; it is locked again",
                options_.directory.string());
      lock_ = lock_directory(options_);
    }
    const std::string folder = std::filesystem::absolute(directory.begin(step)).string();
    const io::FastPlace fast = fast_->begin(step);
    const std::uint64_t number = strategy.save_under_way().begin(strategy.runtime()->count(Role::ps));
    try {
      strategy.ask_every_ps(transport::kSavePart,
                            to_bytes(protocol::SavePart{number, folder, most_shards_of_one(strategy),
                                                        saving.rows, fast.folder.string(), fast.owner}),
                            strategy.runtime()->patience(), "begin its part of a checkpoint");
    } catch (...) {
      strategy.save_under_way().give_up();
      throw;
    }
  });
  saving.told.counters = strategy.by_name(counters);
  saving.for_spares =
      strategy.checkpoint_of(std::filesystem::absolute(saving.folder).string(), step, std::move(counters));
  saving.deadline = transport::deadline_in(strategy::disk_patience(strategy));
  return saving;
}

/// Any thread.
void CheckpointManager::wait_for_ps(const Saving& saving, const std::function<bool()>& done) {
  strategy::Strategy& strategy = strategy_.implementation();
  if (strategy.wait_for_control(done, saving.deadline)) return;
  checkpoint::SaveUnderWay& save = strategy.save_under_way();
  std::vector<std::string> names;
  for (const int ps : save.missing()) names.push_back(strategy.runtime()->member(Role::ps, ps).name());
  save.give_up();
  throw Error(Code::deadline_exceeded,
              fmt::format("waited {} ms for {} to write its part of a checkpoint",
                          strategy::disk_patience(strategy).count(), fmt::join(names, " and ")));
}

/// Any thread. As soon as all parts are there, also when one fails to reach the directory.
void CheckpointManager::publish_fast(const Saving& saving) {
  strategy::Strategy& strategy = strategy_.implementation();
  const checkpoint::SaveUnderWay& save = strategy.save_under_way();
  (void)strategy.wait_for_control([&save] { return save.fast_settled(); }, saving.deadline);
  if (const auto parts = save.fast_parts()) (void)fast_->publish(saving.step, *parts, saving.told);
}

/// Any thread.
std::filesystem::path CheckpointManager::finish(Saving& saving) {
  strategy::Strategy& strategy = strategy_.implementation();
  checkpoint::SaveUnderWay& save = strategy.save_under_way();
  if (*fast_) publish_fast(saving);
  wait_for_ps(saving, [&save] { return save.settled(); });
  io::CheckpointDirectory directory = directory_of(options_);
  const std::vector<io::PartReport> parts = save.take_parts();
  lock_in(lock_).require_current();
  auto folder = directory.publish(saving.step, parts, saving.told);
  strategy.note_checkpoint(std::move(saving.for_spares));
  if (saving.rows.mark != 0) note_whole(saving, folder);
  fast_->clear();
  const auto now = SaveSchedule::Clock::now();
  strategy.save_times().add_saved(now - saving.began);
  if (io::TraceFile* trace = strategy.runtime()->trace(); trace != nullptr)
    trace->span("checkpoint", "checkpoint", saving.began, now, {{"step", saving.step}});
  return folder;
}

void CheckpointManager::note_whole(const Saving& saving, const std::filesystem::path& folder) {
  try {
    whole_ = std::make_shared<Whole>(
        Whole{saving.rows.mark, saving.step, {folder.filename().string(), io::manifest_checksum(folder)}});
  } catch (const Error& error) {
    log::warn("the next checkpoint is a whole one: {}", error.what());  // this one is safe
  }
}

std::shared_ptr<const CheckpointManager::Whole> CheckpointManager::whole_for(std::int64_t step) const {
  if (whole_ == nullptr || whole_->step == step) return nullptr;
  try {
    (void)io::find_base(options_.directory / io::checkpoint_name(step), whole_->base);
    return whole_;
  } catch (const Error& error) {
    log::warn("step {} is saved whole: {}", step, error.what());
    return nullptr;
  }
}

std::filesystem::path CheckpointManager::save(std::int64_t step, const std::string& user_state,
                                              const SaveOptions& options) {
  const auto from = SaveSchedule::Clock::now();
  auto folder = save_now(step, user_state, options);
  const auto until = SaveSchedule::Clock::now();
  schedule_.saved(step, from, until);
  strategy_.implementation().save_times().add_wait(until - from);
  return folder;
}

bool CheckpointManager::due(std::int64_t step) const {
  return schedule_.due(step, SaveSchedule::Clock::now());
}

std::filesystem::path CheckpointManager::save_now(std::int64_t step, const std::string& user_state,
                                                  const SaveOptions& options) {
  try {
    wait();
  } catch (const Error& error) {
    if (error.code() != Code::unavailable) throw;
    log::warn("{}; the next one is saved now", error.what());
  }
  if (options.background && strategy_.implementation().scheduler()) {
    auto background = std::make_unique<Background>();
    Saving saving = begin(step, user_state, options);
    background->folder = saving.folder;
    background->thread = std::jthread([this, to = background.get(), saving = std::move(saving)]() mutable {
      try {
        (void)finish(saving);
      } catch (...) {
        to->error = std::current_exception();
      }
    });
    background_ = std::move(background);
    return background_->folder;
  }
  while (true) {
    Saving saving = begin(step, user_state, options);
    try {
      return finish(saving);
    } catch (const Error& error) {
      // The next attempt waits until the ps is back, or throws when it does not come.
      if (error.code() != Code::unavailable || strategy_.implementation().runtime()->ps_given_up()) throw;
      log::warn("{}; all ps write theirs anew", error.what());
    }
  }
}

void CheckpointManager::wait() {
  if (!background_) return;
  background_->thread.join();
  const std::unique_ptr<Background> ended = std::move(background_);
  if (ended->error) std::rethrow_exception(ended->error);
}

std::vector<std::filesystem::path> CheckpointManager::checkpoints() const {
  std::vector<std::filesystem::path> paths;
  for (io::CheckpointEntry& entry : io::list_checkpoints(options_.directory))
    paths.push_back(std::move(entry.path));
  return paths;
}

std::optional<std::int64_t> CheckpointManager::latest() const {
  const auto newest = io::CheckpointDirectory(options_.directory).latest();
  return newest ? std::optional(newest->step) : std::nullopt;
}

}  // namespace capstan
