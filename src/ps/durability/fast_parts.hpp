// fast_parts.hpp -- the files of a ps below --checkpoint-fast-dir, until they are where they belong.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/bytes_done.hpp"
#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "io/hdf5/fast_directory.hpp"
#include "io/hdf5/fast_level.hpp"

namespace capstan::ps {

/// Of one save; used by the thread that writes. Files that the coordinator does not see are removed when it
/// dies; the others are left to the coordinator.
class FastParts {
 public:
  /// Creates the directory, and removes what earlier saves left where the coordinator does not. Uses no
  /// directory that another user could have put there (io::FastDirectory). `warned`: set when the log has
  /// said once why there is no fast level here.
  FastParts(io::FastPlace location, bool& warned);
  ~FastParts();
  FastParts(const FastParts&) = delete;
  FastParts& operator=(const FastParts&) = delete;

  /// As io::write_part; nothing when there is no room, or no folder: no row has been read then.
  std::optional<io::PartReport> write(const std::string& name, std::span<const io::PartArray> arrays);
  /// All files so far lie there, in a folder that the coordinator has as well.
  bool seen_by_coordinator() const noexcept { return usable_ && seen_; }
  /// Copies them to `folder`. Throws Error: data_loss when one is not what was written, and what
  /// io::copy_part throws.
  void drain(const std::filesystem::path& folder, const io::BytesDone& before_each);

 private:
  struct Written {
    io::PartReport report;
    io::FileDescriptor file;  // whatever its folder is called by now
  };

  void prepare();
  void give_up(const std::exception& why);

  io::FastPlace location_;
  bool& warned_;
  bool usable_;
  bool seen_ = false;
  std::optional<io::FastDirectory> directory_;
  std::vector<Written> written_;
};

}  // namespace capstan::ps
