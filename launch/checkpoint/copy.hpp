// copy.hpp -- all that a checkpoint holds, written as another one.
#pragma once

#include <filesystem>

#include "io/bytes_done.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "launch/checkpoint/new_checkpoint.hpp"

namespace capstan::launch::checkpoint {

/// Bytes that `copy` reads.
std::uint64_t bytes_to_copy(const io::CheckpointReader& from);

/// Writes every array of `from` in `parts` parts. Throws Error(data_loss) where bytes do not have their
/// checksum.
void copy(const io::CheckpointReader& from, NewCheckpoint& to, int parts, const io::BytesDone& done);

/// Writes every array cut as it is in `from`, so that each shard keeps its steps. Compares no checksums.
void copy_as_it_is(const io::CheckpointReader& from, NewCheckpoint& to, const io::BytesDone& done);

/// With the state, settings, positions and counters of `from`. Returns the folder.
std::filesystem::path publish_as(const io::CheckpointReader& from, NewCheckpoint& to);

}  // namespace capstan::launch::checkpoint
