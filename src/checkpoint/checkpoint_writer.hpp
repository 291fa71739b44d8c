// checkpoint_writer.hpp -- saves checkpoints into one directory, each from the request to its publication.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "capstan/checkpoint.hpp"
#include "io/directory_lock.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/fast_level.hpp"
#include "protocol/ps_messages.hpp"
#include "strategy/strategy.hpp"

namespace capstan::checkpoint {

/// A save in two steps: `begin` returns once every ps holds a consistent snapshot of its shards; `finish`
/// waits until every ps has written its file, and publishes the checkpoint. One save at a time.
class CheckpointWriter {
 public:
  /// Creates the directory if necessary, and locks it. Throws Error: permission_denied, failed_precondition
  /// (another job holds the lock).
  CheckpointWriter(strategy::Strategy& strategy, CheckpointOptions options);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// A started save.
  struct Save {
    std::int64_t step = 0;
    std::filesystem::path path = {};  // of the published checkpoint
    io::PublishOptions publish = {};
    strategy::PsContents::Checkpoint for_spares = {};
    protocol::SavedRows rows = {};
    transport::Deadline deadline = {};
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  };
  /// Starts a save. Called by the thread that created the strategy. Throws the errors of awaited closures;
  /// Error: unavailable (a ps died), deadline_exceeded, and errors of the directory.
  Save begin(std::int64_t step, const std::string& user_state, const SaveOptions& options);
  /// Completes a save and returns the path of the checkpoint. Any thread. Throws Error: unavailable (a ps
  /// died), deadline_exceeded, and the error that a ps reported.
  std::filesystem::path finish(Save& save);

  /// Makes the next save a full one, because every row may have changed.
  void drop_base() { base_.reset(); }

  const CheckpointOptions& options() const noexcept { return options_; }
  io::CheckpointDirectory directory() const;
  io::FastLevel& fast_level() noexcept { return fast_; }

 private:
  /// A full save, which can be the base of increments.
  struct FullSave {
    std::uint64_t mark = 0;  // see protocol::SavedRows
    std::int64_t step = 0;
    io::Base base = {};
  };

  void wait_for_earlier_save();
  void choose_rows(Save& save, bool incremental);
  std::shared_ptr<const FullSave> base_for(std::int64_t step) const;
  void note_base(const Save& save, const std::filesystem::path& path);
  void lock_again_if_replaced();
  void request_files(std::int64_t step, const protocol::SavedRows& rows);
  void publish_fast(const Save& save);
  void wait_for_files(const Save& save);

  strategy::Strategy& strategy_;
  CheckpointOptions options_;
  io::FastLevel fast_;  // of --checkpoint-fast-dir
  std::shared_ptr<const io::DirectoryLock> lock_;
  bool incremental_ = false;              // whether an incremental save was requested before
  std::shared_ptr<const FullSave> base_;  // null if there is none; set by the thread that calls finish()
};

}  // namespace capstan::checkpoint
