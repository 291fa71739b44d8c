// copy_part.hpp -- copies a part into a checkpoint and verifies it.
#pragma once

#include <filesystem>

#include "io/bytes_done.hpp"
#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Copies `from`, whose path is `from_path`, to `to`, replacing an existing file, and fsyncs the copy and its
/// directory. Calls `before_chunk` with the size of each chunk before copying it; it may throw to abort.
/// Throws Error: data_loss that names `from_path` if size or checksums differ from `part`; resource_exhausted
/// (disk full, quota; before copying if the file system supports fallocate), permission_denied, internal.
void copy_part(const FileDescriptor& from, const std::filesystem::path& from_path,
               const std::filesystem::path& to, const PartReport& part, const BytesDone& before_chunk = {});

}  // namespace capstan::io
