// restore_plan.hpp -- which bytes of a checkpoint's files each ps reads, and which it compares with their
// checksums.
//
// The coordinator makes the plan from the manifest; a ps follows its part of it and needs neither the
// manifest nor HDF5. Bytes are compared before any ps changes anything: kCheckRestore to all, then
// kRestorePart to all.
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

/// Bytes of a file that belong into one array of a shard.
struct RestorePiece {
  std::uint32_t file = 0;   // of RestorePart::files
  std::uint32_t array = 0;  // 0: the values; n: the n-th slot, from 1 on
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t at = 0;  // first byte in the array
};

/// Rows of an increment, some of which may belong into one array of a shard; after the pieces.
struct RestoreChanges {
  std::uint32_t file = 0;
  std::uint32_t array = 0;
  io::ChangedRows rows;
};

struct RestoreShard {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::int64_t steps = 0;
  std::optional<double> learning_rate;  // that was set during the training before
  std::vector<RestorePiece> pieces;
  std::vector<RestoreChanges> changes;
};

/// kRestorePart: the ps fills these shards -> nothing.
struct RestorePart {
  std::string folder;
  std::vector<std::string> files;  // in the folder, or with whole paths
  std::vector<RestoreShard> shards;
};

struct DatasetCheck {
  std::uint32_t file = 0;  // of CheckRestore::files
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string xxh3;
  std::string path;
};

/// kCheckRestore: the ps reads these and compares -> nothing. Changes nothing.
struct CheckRestore {
  std::string folder;
  std::vector<std::string> files;
  std::vector<DatasetCheck> datasets;
};

/// What fills a shard.
struct ShardSource {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  std::string name;  // of the variable in the checkpoint
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::vector<std::string> slots;  // in the order of protocol::slots_of
};

class RestorePlan {
 public:
  /// Keeps the reader. REQUIRES: ps >= 1.
  RestorePlan(const io::CheckpointReader& reader, int ps);

  /// REQUIRES: the checkpoint has the variable, with such rows and such slots.
  void fill(int ps, const ShardSource& shard);
  /// Its bytes are compared though no shard takes them.
  void check_whole(const std::string& variable);

  /// By ps. Every dataset of which some shard takes rows is read by one ps, whole: a checksum is of all of
  /// it. That is the ps that takes most of it; of equals the one with the least to read so far.
  std::vector<CheckRestore> checks() const;
  std::vector<RestorePart> parts() const;
  /// Of all datasets that are read.
  std::uint64_t bytes() const;

 private:
  using Dataset = std::pair<std::size_t, std::size_t>;  // of parts_, and of its datasets
  struct Extent {
    std::uint64_t first_row;
    std::uint64_t rows;
    Dataset dataset;
  };
  using ArrayName = std::pair<std::string, std::string>;  // variable, and "value" or a slot

  struct Part {
    std::string file;  // as in RestorePart
    const io::PartReport* report;
  };

  /// What comes up in a message: numbers of parts, and their names.
  class Files;

  void add(const io::CheckpointReader& from, bool is_base);
  const io::DatasetReport& report(const Dataset& dataset) const;
  /// Of the numbers of the rows that it has.
  Dataset numbers_of(const Dataset& changed) const;
  void take(int ps, const Dataset& dataset, std::uint64_t bytes) { taken_[dataset][ps] += bytes; }
  void take_array(int ps, const ShardSource& from, const std::string& which, std::uint32_t array,
                  RestoreShard& to);
  void take_rows(int ps, const ShardSource& from, const Extent& extent, std::uint32_t array,
                 RestoreShard& to);
  void take_changes(int ps, const Extent& extent, std::uint32_t array, RestoreShard& to);

  const io::CheckpointReader& reader_;
  std::vector<std::vector<RestoreShard>> shards_;          // by ps; files are numbers of parts
  std::vector<Part> parts_;                                // those of a base at the end
  std::map<ArrayName, std::vector<Extent>> arrays_;        // whole rows, by first row
  std::map<ArrayName, std::vector<Extent>> changed_;       // of an increment: those that changed
  std::map<Dataset, std::map<int, std::uint64_t>> taken_;  // bytes, by ps
};

}  // namespace capstan::protocol
