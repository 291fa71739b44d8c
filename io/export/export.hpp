// export.hpp -- writes arrays of a checkpoint to one file for other programs.
//
// All functions stream: a few MiB are in memory at once. They verify checksums as they read and throw
// Error(data_loss) on a mismatch, Error(resource_exhausted) on a full disk. The caller publishes the file.
#pragma once

#include <vector>

#include "io/bytes_done.hpp"
#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/output_file.hpp"

namespace capstan::io {

/// Writes HDF5 with one contiguous dataset per array, at the paths of a checkpoint, and the index that
/// capstan::Model reads.
void export_model(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                  const BytesDone& done);

/// Writes one array as .npy. bfloat16, which numpy lacks, becomes float32.
void export_npy(const CheckpointReader& from, const ArrayInfo& array, OutputFile& to, const BytesDone& done);

/// Writes an .npz archive: values under the variable's name, slots as "<variable>/slots/<slot>". bfloat16
/// becomes float32.
void export_npz(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                const BytesDone& done);

/// Writes Keras 2 HDF5 weights, which Keras 3 also reads; values only. The first component of a variable's
/// name is its layer. Within a layer, weights with Keras's names come first, in Keras's order, then the
/// others in the order of `arrays`. bfloat16 becomes float32.
void export_keras(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                  const BytesDone& done);

}  // namespace capstan::io
