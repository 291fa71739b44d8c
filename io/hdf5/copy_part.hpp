// copy_part.hpp -- a part that lies elsewhere becomes part of a checkpoint.
#pragma once

#include <filesystem>

#include "io/bytes_done.hpp"
#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Copies `from`, of the name `named`, to `to`, replacing one of that name, and fsyncs it and its folder.
/// What is read has the checksums that were written, or it is Error(data_loss) that names `named`.
/// `before_each` is called before so many more bytes are copied, and ends it by throwing. Otherwise throws
/// Error: resource_exhausted (disk full, quota), before anything is copied where the file system can reserve;
/// permission_denied, internal.
void copy_part(const FileDescriptor& from, const std::filesystem::path& named,
               const std::filesystem::path& to, const PartReport& part, const BytesDone& before_each = {});

}  // namespace capstan::io
