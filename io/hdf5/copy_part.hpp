// copy_part.hpp -- copies a part into a checkpoint and verifies it.
#pragma once

#include <filesystem>

#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "io/progress_callback.hpp"

namespace capstan::io {

/// Copies `from`, whose path is `from_path`, to `to`, replacing an existing file, and fsyncs the copy and its
/// directory. Before each chunk, calls `before_chunk` with its size; `before_chunk` may throw to abort.
/// Throws Error: data_loss, which names `from_path`, if size or checksums differ from `part`;
/// resource_exhausted if the disk or quota is full (before copying, if the file system supports fallocate),
/// permission_denied, internal.
void copy_part(const FileDescriptor& from, const std::filesystem::path& from_path,
               const std::filesystem::path& to, const PartReport& part,
               const ProgressCallback& before_chunk = {});

}  // namespace capstan::io
