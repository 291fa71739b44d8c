// shard_file_writer.hpp -- writes the part of a ps in a checkpoint, in the background.
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

/// Used by the thread of the ps. Another thread writes the files, one save at a time.
class ShardFileWriter {
 public:
  /// Reports the result of a save: its files, or an error; and before that, that the files are in the fast
  /// level.
  using Report = std::function<void(const protocol::ShardsSaved& saved, std::span<const std::byte> payload)>;

  /// `bytes_a_second`: rate limit of writes to the checkpoint's directory; 0: none. `wake` is called by
  /// another thread when `advance` has work; `report` is called by `advance`.
  ShardFileWriter(Store& store, int ps, std::uint64_t bytes_a_second, std::function<void()> wake,
                  Report report);
  ~ShardFileWriter();
  ShardFileWriter(const ShardFileWriter&) = delete;
  ShardFileWriter& operator=(const ShardFileWriter&) = delete;

  /// Begins a save of the shards as they are, or as soon as they are consistent. Cancels an earlier save
  /// without a report.
  void begin(const protocol::SaveShards& save, int ps_count);
  /// Returns true if there was anything to do.
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
    std::uint64_t attempt = 0;  // part of the names of its files
    std::unique_ptr<StoreSnapshot> snapshot;
    bool given_up = false;
    std::vector<io::PartReport> reports;
    bool in_fast_level = false;  // all files, where the coordinator sees them
    std::exception_ptr error;
    std::atomic<bool> copied{false};  // the rows; reports and in_fast_level are set
    std::atomic<bool> written{false};
    std::jthread thread;  // last: it uses the other members
  };

  void write(Save& save, const std::stop_token& stop);
  void write_files(Save& save, FastParts& fast, const std::stop_token& stop);
  bool take_consistent(Save& save);
  bool release_rows(Save& save);
  void report(Save& save);

  Store& store_;
  int ps_;
  std::uint64_t bytes_a_second_;
  std::function<void()> wake_;
  Report report_;
  bool warned_ = false;                       // about the fast level; used by the writing thread
  std::vector<std::unique_ptr<Save>> saves_;  // all but the last are cancelled
};

}  // namespace capstan::ps
