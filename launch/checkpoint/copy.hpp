// copy.hpp -- copies the content of a checkpoint into a new one.
#pragma once

#include <filesystem>

#include "io/hdf5/checkpoint_reader.hpp"
#include "io/progress_callback.hpp"
#include "launch/checkpoint/new_checkpoint.hpp"

namespace capstan::launch::checkpoint {

/// Bytes that `copy` reads.
std::uint64_t bytes_to_copy(const io::CheckpointReader& from);

/// Writes every array of `from` in `parts` parts. Throws Error(data_loss) on a checksum mismatch.
void copy(const io::CheckpointReader& from, NewCheckpoint& to, int parts,
          const io::ProgressCallback& progress);

/// Writes every array in the same parts as `from`, so that each shard keeps its step. Verifies no checksums.
void copy_parts(const io::CheckpointReader& from, NewCheckpoint& to, const io::ProgressCallback& progress);

/// Publishes `to` with the user state, settings, positions and counters of `from`. Returns its directory.
std::filesystem::path publish_as(const io::CheckpointReader& from, NewCheckpoint& to);

}  // namespace capstan::launch::checkpoint
