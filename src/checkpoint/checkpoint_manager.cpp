// checkpoint_manager.cpp -- saves in the foreground or in the background, and decides when to save.
#include <exception>
#include <thread>

#include "base/log.hpp"
#include "capstan/checkpoint.hpp"
#include "checkpoint/checkpoint_writer.hpp"

namespace capstan {

struct CheckpointManager::Background {
  std::filesystem::path path;
  std::exception_ptr error;
  std::jthread thread;  // last member, because the thread sets `error`
};

CheckpointManager::CheckpointManager(ParameterServerStrategy& strategy, CheckpointOptions options)
    : LastRestored(strategy),
      schedule_(options.interval, 0, SaveSchedule::Clock::now()),
      writer_(std::make_unique<checkpoint::CheckpointWriter>(strategy.implementation(), std::move(options))) {
}

CheckpointManager::~CheckpointManager() {
  try {
    wait();
  } catch (const std::exception& error) {
    log::error("cannot save a checkpoint: {}", error.what());
  }
}

std::filesystem::path CheckpointManager::save(std::int64_t step, const std::string& user_state,
                                              const SaveOptions& options) {
  const auto from = SaveSchedule::Clock::now();
  auto path = save_now(step, user_state, options);
  const auto until = SaveSchedule::Clock::now();
  schedule_.saved(step, from, until);
  strategy_.implementation().save_times().add_wait(until - from);
  return path;
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
    log::warn("{}; saving the next checkpoint now", error.what());
  }
  if (options.background && strategy_.implementation().control().scheduler()) {
    return save_in_background(step, user_state, options);
  }
  while (true) {
    checkpoint::CheckpointWriter::Save save = writer_->begin(step, user_state, options);
    try {
      return writer_->finish(save);
    } catch (const Error& error) {
      // The next attempt waits until the ps is restarted, or throws if it is not.
      if (error.code() != Code::unavailable || strategy_.implementation().runtime()->ps_given_up()) throw;
      log::warn("{}; all ps write their parts again", error.what());
    }
  }
}

std::filesystem::path CheckpointManager::save_in_background(std::int64_t step, const std::string& user_state,
                                                            const SaveOptions& options) {
  auto background = std::make_unique<Background>();
  checkpoint::CheckpointWriter::Save save = writer_->begin(step, user_state, options);
  background->path = save.path;
  background->thread = std::jthread([this, to = background.get(), save = std::move(save)]() mutable {
    try {
      (void)writer_->finish(save);
    } catch (...) {
      to->error = std::current_exception();
    }
  });
  background_ = std::move(background);
  return background_->path;
}

void CheckpointManager::wait() {
  if (!background_) return;
  background_->thread.join();
  const std::unique_ptr<Background> ended = std::move(background_);
  if (ended->error) std::rethrow_exception(ended->error);
}

std::vector<std::filesystem::path> CheckpointManager::checkpoints() const {
  std::vector<std::filesystem::path> paths;
  for (io::CheckpointEntry& entry : io::list_checkpoints(writer_->options().directory))
    paths.push_back(std::move(entry.path));
  return paths;
}

std::optional<std::int64_t> CheckpointManager::latest() const {
  const auto newest = io::CheckpointDirectory(writer_->options().directory).latest();
  return newest ? std::optional(newest->step) : std::nullopt;
}

}  // namespace capstan
