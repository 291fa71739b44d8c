// checkpoint_reader.hpp -- reads one checkpoint, and finds the newest one that can be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

struct Manifest;

/// An increment shows what it is together with its base. One thread at a time; readers in different threads
/// are independent of each other.
class CheckpointReader {
 public:
  /// Opens `<directory>/checkpoint-XXXXXXXX`. Checks the manifest, the master, that every part is there with
  /// its exact size and undamaged HDF5 metadata, and all of this of an increment's base; reads no rows.
  /// Throws Error: not_found (no such folder), data_loss naming the file and the fault.
  explicit CheckpointReader(const std::filesystem::path& folder);
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;
  ~CheckpointReader();

  /// Reads every byte of every dataset and compares checksums. Throws Error data_loss naming file and
  /// dataset.
  void verify() const;

  /// Null unless it is an increment.
  const CheckpointReader* base() const noexcept;
  /// Whether its base has rows of this array; those that changed are all of them otherwise.
  bool base_has(std::string_view variable, std::string_view which) const;

  const std::filesystem::path& folder() const noexcept;
  const Manifest& manifest() const noexcept;
  std::int64_t step() const noexcept;
  const std::vector<VariableInfo>& variables() const noexcept;  // by name
  /// In the order of their numbers: files, and where in them which rows lie.
  const std::vector<PartReport>& parts() const noexcept;
  /// Throws Error not_found that lists the names there are.
  const VariableInfo& variable(std::string_view name) const;
  /// JSON texts, as given to `publish`.
  const std::string& user_state() const noexcept;
  const std::string& settings() const noexcept;
  const std::map<std::string, std::string>& positions() const noexcept;  // by name
  const std::map<std::string, std::int64_t>& counters() const noexcept;  // by name
  /// "0.1.0 (commit 1234567)"; empty when it is older than that.
  const std::string& written_by() const noexcept;

  /// Rows [first_row, first_row + rows) of "value" or of a slot, however the parts are cut, into `out`, which
  /// has room for rows * columns elements of the array's dtype. Throws Error: not_found, out_of_range,
  /// data_loss.
  void read_rows(std::string_view variable, std::string_view which, std::uint64_t first_row,
                 std::uint64_t rows, void* out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A checkpoint to go on from, and the newer ones that could not be used.
struct FoundCheckpoint {
  CheckpointReader reader;
  std::vector<std::string> damaged;  // "checkpoint-00000012: part-00001-of-00002.h5 is missing", newest first
};

/// What an opened checkpoint is put to. When it throws Error(data_loss), the checkpoint is damaged, which the
/// log says, and the one before is tried; any other exception ends the search.
using Verify = std::function<void(const CheckpointReader&)>;

/// The newest checkpoint below `directory` that opens and that `verify` finds whole: CheckpointReader::verify
/// where none is given. Throws Error: not_found when there is none at all, data_loss that lists each with its
/// fault when all are damaged; and what `verify` throws.
FoundCheckpoint open_latest(const std::filesystem::path& directory, const Verify& verify = {});

/// What `--resume PATH` means: PATH is one checkpoint (which must verify) or the directory of all of them.
/// Throws as above; a path that is a file, ours or foreign, is data_loss with what to give instead.
FoundCheckpoint open_to_resume(const std::filesystem::path& path);

}  // namespace capstan::io
