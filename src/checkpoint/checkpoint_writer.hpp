// checkpoint_writer.hpp -- one save after another into one directory, from the request to the published
// checkpoint.
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

  /// A save that has begun.
  struct Save {
    std::int64_t step = 0;
    std::filesystem::path path = {};  // of the checkpoint once it is published
    io::PublishOptions publish = {};
    strategy::PsContents::Checkpoint for_spares = {};
    protocol::SavedRows rows = {};
    transport::Deadline deadline = {};
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  };
  /// By the thread that made the strategy. Throws what closures that are awaited threw; Error: unavailable (a
  /// ps died), deadline_exceeded, and what the directory throws.
  Save begin(std::int64_t step, const std::string& user_state, const SaveOptions& options);
  /// Any thread. Returns the path. Throws Error: unavailable (a ps died), deadline_exceeded, and what a ps
  /// reported.
  std::filesystem::path finish(Save& save);

  /// The next save is a full one: every row may have changed.
  void forget_base() { base_.reset(); }

  const CheckpointOptions& options() const noexcept { return options_; }
  io::CheckpointDirectory directory() const;
  io::FastLevel& fast_level() noexcept { return fast_; }

 private:
  /// A full save, on which increments may be based.
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
  bool incremental_ = false;              // an incremental save was requested before
  std::shared_ptr<const FullSave> base_;  // null: there is none. Set by the thread of `finish`
};

}  // namespace capstan::checkpoint
