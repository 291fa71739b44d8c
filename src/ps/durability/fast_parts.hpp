// fast_parts.hpp -- files that a ps writes below --checkpoint-fast-dir, then copies to the checkpoint
// directory.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "io/hdf5/fast_directory.hpp"
#include "io/hdf5/fast_level.hpp"
#include "io/progress_callback.hpp"

namespace capstan::ps {

/// Files of one save. Used by the writing thread only. The destructor removes the files if the coordinator
/// does not see them; otherwise the coordinator removes them.
class FastParts {
 public:
  /// Creates the directory, and removes files of earlier saves unless the coordinator does. Rejects a
  /// directory that another user could have created (io::FastDirectory). `warned`: set when an unusable
  /// directory is logged, so that later saves do not log it again; must outlive this object.
  FastParts(io::FastLocation location, bool& warned);
  ~FastParts();
  FastParts(const FastParts&) = delete;
  FastParts& operator=(const FastParts&) = delete;

  /// Like io::write_part, but returns nullopt if the directory is unusable or its disk is full. In that case
  /// no row has been read.
  std::optional<io::PartReport> write(const std::string& name, std::span<const io::PartArray> arrays);
  /// Returns true if all files so far are in the fast level, in a directory that the coordinator also sees.
  bool visible_to_coordinator() const noexcept { return usable_ && visible_to_coordinator_; }
  /// Copies the files to `directory`. Throws Error: data_loss if a file differs from what was written, or an
  /// error of io::copy_part.
  void drain(const std::filesystem::path& directory, const io::ProgressCallback& before_each);

 private:
  struct Written {
    io::PartReport report;
    io::FileDescriptor file;  // stays valid if the directory is renamed
  };

  void prepare();
  void disable(const std::exception& why);

  io::FastLocation location_;
  bool& warned_;
  bool usable_;
  bool visible_to_coordinator_ = false;
  std::optional<io::FastDirectory> directory_;
  std::vector<Written> written_;
};

}  // namespace capstan::ps
