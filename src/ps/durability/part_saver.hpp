// part_saver.hpp -- a ps writes its part of a checkpoint while it goes on.
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

/// Used by the ps's thread. The files are written by a thread of their own, one save at a time.
class PartSaver {
 public:
  /// What has become of a save: reports of its files, or the text of an error; and before that, that they
  /// are in the fast level.
  using Report = std::function<void(const protocol::PartSaved& saved, std::span<const std::byte> payload)>;

  /// `bytes_a_second`, to the checkpoint's folder: 0 = as fast as it goes. `wake` is called by another thread
  /// when there is something for `advance`; `report` by `advance`.
  PartSaver(Store& store, int ps, std::uint64_t bytes_a_second, std::function<void()> wake, Report report);
  ~PartSaver();
  PartSaver(const PartSaver&) = delete;
  PartSaver& operator=(const PartSaver&) = delete;

  /// From now on what is pushed is not part of it, as far as shards are whole. An earlier save that is under
  /// way has been given up by who asked for it: it ends, and is not reported.
  void begin(const protocol::SavePart& save, int ps_count);
  /// True when there was something to do.
  bool advance();
  /// Returns true if the next `advance` may take seconds.
  bool advance_copies_rows() const {
    return !saves_.empty() && saves_.back()->snapshot && saves_.back()->snapshot->advance_copies_rows();
  }
  bool busy() const noexcept { return !saves_.empty(); }

 private:
  struct Save {
    protocol::SavePart request;
    int ps_count;
    std::uint64_t attempt = 0;  // in the names of its files
    std::unique_ptr<StoreSnapshot> snapshot;
    bool given_up = false;
    std::vector<io::PartReport> reports;
    bool in_fast_level = false;  // all of it, and the coordinator sees it
    std::exception_ptr error;
    std::atomic<bool> copied{false};  // the rows; reports and in_fast_level are there
    std::atomic<bool> written{false};
    std::jthread thread;  // last: it uses the rest
  };

  void write(Save& save, const std::stop_token& stop);
  void write_files(Save& save, FastParts& fast, const std::stop_token& stop);
  bool take_whole(Save& save);
  bool release_rows(Save& save);
  void report(Save& save);

  Store& store_;
  int ps_;
  std::uint64_t bytes_a_second_;
  std::function<void()> wake_;
  Report report_;
  bool warned_ = false;                       // of the fast level; the thread's that writes
  std::vector<std::unique_ptr<Save>> saves_;  // all but the last are given up
};

}  // namespace capstan::ps
