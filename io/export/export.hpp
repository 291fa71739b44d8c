// export.hpp -- writes arrays of a checkpoint to one file for other programs.
//
// All functions stream: a few MiB are in memory at once. They verify checksums as they read and throw
// Error(data_loss) on a mismatch, Error(resource_exhausted) on a full disk. The caller publishes the file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/output_file.hpp"
#include "io/progress_callback.hpp"

namespace capstan::io {

/// Returns the arrays of variables, or of all variables without `names`, in this order. The parts of a
/// dynamic table become one array with a row for each key; a second array has the keys (kTableKeys). Reads
/// the states of tables. Throws Error: not_found for a missing name,
/// invalid_argument for a part of a table.
std::vector<ArrayInfo> exported_arrays(const CheckpointReader& from, const std::vector<std::string>& names,
                                       bool with_slots);
/// Passes a complete array of exported_arrays() to `sink`, as read_array does.
void read_exported(const CheckpointReader& from, const ArrayInfo& array, bool widen,
                   const ProgressCallback& progress, const std::function<void(std::string_view piece)>& sink);

/// Writes HDF5 with one contiguous dataset per array, at the same path as in a checkpoint, and the index that
/// capstan::Model reads. Adds an index of the keys to each dynamic table (kTableIndex).
void export_model(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                  const ProgressCallback& progress);

/// Writes one array as .npy. bfloat16, which numpy lacks, becomes float32.
void export_npy(const CheckpointReader& from, const ArrayInfo& array, OutputFile& to,
                const ProgressCallback& progress);

/// Writes an .npz archive: values under the variable's name, slots and keys as "<variable>/slots/<slot>".
/// bfloat16 becomes float32.
void export_npz(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                const ProgressCallback& progress);

/// Writes Keras 2 HDF5 weights, which Keras 3 also reads: values, and the keys of dynamic tables. The first
/// component of a variable's name is its layer. Within a layer, weights with Keras's names come first, in
/// Keras's order, then the others in the order of `arrays`. bfloat16 becomes float32.
void export_keras(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                  const ProgressCallback& progress);

}  // namespace capstan::io
