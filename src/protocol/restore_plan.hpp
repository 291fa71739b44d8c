// restore_plan.hpp -- plans which bytes of a checkpoint's files each ps reads, and which checksums it
// verifies.
//
// The coordinator computes the plan from the manifest; a ps follows its part of the plan and needs neither
// the manifest nor HDF5. Checksums are verified before any ps changes its shards: kCheckRestore to all ps,
// then kRestorePart to all ps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/hdf5/changed_rows.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::protocol {

/// Bytes of a file that fill a range of one array of a shard.
struct RestorePiece {
  std::uint32_t file = 0;   // index in RestorePart::files
  std::uint32_t array = 0;  // 0: the values; n: the n-th slot, starting at 1
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t at = 0;  // offset in the array
};

/// Changed rows of an increment. Those within the shard overwrite rows of one of its arrays, after the
/// pieces.
struct RestoreChanges {
  std::uint32_t file = 0;
  std::uint32_t array = 0;
  io::ChangedRows rows;
};

/// Saved part of a dynamic table. The shard takes the keys whose hash selects this shard.
struct RestoreTable {
  std::uint64_t rows = 0;    // of the part
  std::uint64_t shards = 0;  // number of shards that the table has now
  bool first = false;        // the first part for the shard, which is emptied before
};

struct RestoreShard {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::int64_t steps = 0;
  std::optional<double> learning_rate;  // set during training, or nullopt
  std::vector<RestorePiece> pieces;
  std::vector<RestoreChanges> changes;
  std::optional<RestoreTable> table = {};
};

/// kRestorePart: the ps fills these shards, replies nothing.
struct RestorePart {
  std::string directory;
  std::vector<std::string> files;  // relative to the directory, or absolute
  std::vector<RestoreShard> shards;
};

struct DatasetCheck {
  std::uint32_t file = 0;  // index in CheckRestore::files
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string xxh3;
  std::string path;
};

/// kCheckRestore: the ps verifies these checksums and changes nothing; replies nothing.
struct CheckRestore {
  std::string directory;
  std::vector<std::string> files;
  std::vector<DatasetCheck> datasets;
};

/// A shard to fill from a checkpoint.
struct ShardSource {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::string name;  // name of the variable in the checkpoint
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::vector<std::string> slots;  // in the order of protocol::slots_of
};

class RestorePlan {
 public:
  /// `reader` must outlive the plan. REQUIRES: ps >= 1.
  RestorePlan(const io::CheckpointReader& reader, int ps);

  /// Adds a shard of ps `ps`. REQUIRES: the checkpoint contains the variable with these rows and slots.
  void fill(int ps, const ShardSource& shard);
  /// Adds a shard of a dynamic table of `shards` shards; `shard.name` is the name of the table. Takes keys
  /// from one saved part if the table was saved with `shards` shards, else from all parts.
  void fill_table(int ps, const ShardSource& shard, std::uint64_t shards);
  /// Adds all datasets of a variable to the checks, even those from which no shard takes rows.
  void check_complete(const std::string& variable);

  /// Returns the checks, by ps. A checksum covers a complete dataset, so one ps verifies each dataset: the ps
  /// that takes the most bytes of it, or among equals the one with the fewest bytes to verify so far.
  std::vector<CheckRestore> checks() const;
  std::vector<RestorePart> parts() const;
  /// Bytes of all datasets that are read.
  std::uint64_t bytes() const;

 private:
  using Dataset = std::pair<std::size_t, std::size_t>;  // indices in parts_ and in its datasets
  struct Extent {
    std::uint64_t first_row;
    std::uint64_t rows;
    Dataset dataset;
  };
  using ArrayName = std::pair<std::string, std::string>;  // variable; "value" or a slot

  struct Part {
    std::string file;  // as in RestorePart
    const io::PartReport* report;
  };

  /// Numbers the part files that occur in one message.
  class Files;

  void add(const io::CheckpointReader& from, bool is_base);
  const io::DatasetReport& report(const Dataset& dataset) const;
  /// Returns the dataset that contains the row numbers of the dataset `changed`.
  Dataset numbers_of(const Dataset& changed) const;
  void take(int ps, const Dataset& dataset, std::uint64_t bytes) { taken_[dataset][ps] += bytes; }
  RestoreShard filled(int ps, const ShardSource& shard);
  void take_array(int ps, const ShardSource& from, const std::string& component, std::uint32_t array,
                  RestoreShard& to);
  void take_rows(int ps, const ShardSource& from, const Extent& extent, std::uint32_t array,
                 RestoreShard& to);
  void take_changes(int ps, const Extent& extent, std::uint32_t array, RestoreShard& to);

  const io::CheckpointReader& reader_;
  std::vector<std::vector<RestoreShard>> shards_;          // by ps; files are indices in parts_
  std::vector<Part> parts_;                                // parts of the base are last
  std::map<ArrayName, std::vector<Extent>> arrays_;        // contiguous rows, by first row
  std::map<ArrayName, std::vector<Extent>> changed_;       // changed rows of an increment
  std::map<Dataset, std::map<int, std::uint64_t>> taken_;  // bytes, by ps
};

}  // namespace capstan::protocol
