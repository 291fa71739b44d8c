// shard_file_writer.hpp -- writes a ps's part of a checkpoint in the background.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"
#include "protocol/ps_messages.hpp"
#include "ps/durability/fast_parts.hpp"
#include "ps/durability/store_snapshot.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

/// Used by the ps's thread. A second thread writes the files, one save at a time.
class ShardFileWriter {
 public:
  /// Reports the result of a save: its files, or an error. If all files are in the fast level and the
  /// coordinator sees them, reports that first.
  using Report = std::function<void(const protocol::ShardsSaved& saved, std::span<const std::byte> payload)>;

  /// `bytes_per_second`: rate limit of writes to the checkpoint directory; 0: none. `wake` is called by
  /// either thread when `advance` has work; `report` is called by `advance`. `store` must outlive this
  /// object.
  ShardFileWriter(Store& store, int ps, std::uint64_t bytes_per_second, std::function<void()> wake,
                  Report report);
  ~ShardFileWriter();
  ShardFileWriter(const ShardFileWriter&) = delete;
  ShardFileWriter& operator=(const ShardFileWriter&) = delete;

  /// Begins a save of the shards as they are now, or as soon as they are consistent. Cancels an earlier save,
  /// which is not reported.
  void begin(const protocol::SaveShards& save, int ps_count);
  /// Freezes shards that have become consistent, releases copied rows and reports results. Returns true if
  /// there was anything to do.
  bool advance();
  /// Returns true if the next `advance` may take seconds.
  bool advance_copies_rows() const {
    return !saves_.empty() && saves_.back()->snapshot && saves_.back()->snapshot->advance_copies_rows();
  }
  bool busy() const noexcept { return !saves_.empty(); }

 private:
  struct Save {
    protocol::SaveShards request;
    int ps_count;
    std::uint64_t attempt = 0;  // random number in the names of its files
    std::unique_ptr<StoreSnapshot> snapshot;
    bool cancelled = false;
    std::vector<io::PartReport> reports;
    bool coordinator_sees_parts = false;  // all files are in a fast level that the coordinator sees
    std::exception_ptr error;
    std::atomic<bool> copied{false};   // all rows are copied; publishes `reports`, `coordinator_sees_parts`
    std::atomic<bool> written{false};  // the save has ended; publishes `error`
    std::jthread thread;               // declared last, since it uses the other members
  };

  void write(Save& save, const std::stop_token& stop);
  void write_files(Save& save, FastParts& fast, const std::stop_token& stop);
  bool freeze_consistent(Save& save);
  bool release_rows(Save& save);
  void report(Save& save);

  Store& store_;
  int ps_;
  std::uint64_t bytes_per_second_;
  std::function<void()> wake_;
  Report report_;
  bool warned_ = false;                       // see FastParts; used by the writing thread
  std::vector<std::unique_ptr<Save>> saves_;  // all but the last are cancelled
};

}  // namespace capstan::ps
