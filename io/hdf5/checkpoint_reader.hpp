// checkpoint_reader.hpp -- reads one checkpoint, and finds the newest undamaged one.
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

/// Reads an increment merged with its base. One thread at a time; readers in different threads are
/// independent.
class CheckpointReader {
 public:
  /// Opens `<directory>/checkpoint-XXXXXXXX`. Checks the manifest, the master, and the size and HDF5 metadata
  /// of every part; for an increment, checks its base as well. Reads no rows. Throws Error: not_found (no
  /// such directory), or data_loss, which names the file and the fault.
  explicit CheckpointReader(const std::filesystem::path& directory);
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;
  ~CheckpointReader();

  /// Reads all datasets, including those of the base, and compares checksums. Throws Error(data_loss), which
  /// names file and dataset.
  void verify() const;

  /// Null unless this is an increment.
  const CheckpointReader* base() const noexcept;
  /// Returns true if the base has this array with the same shape and dtype; otherwise the increment holds all
  /// of its rows.
  bool base_has(std::string_view variable, std::string_view component) const;

  const std::filesystem::path& directory() const noexcept;
  const Manifest& manifest() const noexcept;
  std::int64_t step() const noexcept;
  const std::vector<VariableInfo>& variables() const noexcept;  // by name
  /// By part number.
  const std::vector<PartReport>& parts() const noexcept;
  /// Throws Error(not_found), which lists the existing variables, if there is no variable `name`.
  const VariableInfo& variable(std::string_view name) const;
  /// JSON, as given to `publish`.
  const std::string& user_state() const noexcept;
  const std::string& settings() const noexcept;
  const std::map<std::string, std::string>& positions() const noexcept;  // by name
  const std::map<std::string, std::int64_t>& counters() const noexcept;  // by name
  /// Version that wrote the checkpoint: "0.1.0 (commit 1234567)"; empty if the checkpoint does not record it.
  const std::string& written_by() const noexcept;

  /// Reads rows [first_row, first_row + rows) of "value" or of a slot, whatever the partition into parts.
  /// `out` has capacity for that many rows of the array's dtype. Throws Error: not_found, out_of_range,
  /// data_loss.
  void read_rows(std::string_view variable, std::string_view component, std::uint64_t first_row,
                 std::uint64_t rows, void* out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A checkpoint to resume from, and the newer ones that are damaged.
struct FoundCheckpoint {
  CheckpointReader reader;
  std::vector<std::string> damaged;  // "checkpoint-00000012: part-00001-of-00002.h5 is missing", newest first
};

/// Check of an opened checkpoint. Error(data_loss) marks it as damaged and continues with the next older one;
/// any other exception ends the search.
using Verify = std::function<void(const CheckpointReader&)>;

/// Opens the newest checkpoint below `directory` that can be opened and passes `verify` (default:
/// CheckpointReader::verify). Throws Error: not_found if there is no checkpoint, data_loss, which lists the
/// faults, if all are damaged. Passes other exceptions of `verify` on.
FoundCheckpoint open_latest(const std::filesystem::path& directory, const Verify& verify = {});

/// Opens the PATH of `--resume`: one checkpoint, which must be undamaged, or a directory of checkpoints, of
/// which it opens the newest undamaged one. Throws as open_latest does, and Error(data_loss) if PATH is a
/// file.
FoundCheckpoint open_to_resume(const std::filesystem::path& path);

}  // namespace capstan::io
