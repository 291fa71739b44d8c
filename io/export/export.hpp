// export.hpp -- arrays of a checkpoint as one file that other programs read.
//
// All stream: a few MiB are in memory at once. All compare checksums on the way and throw Error data_loss; a
// full disk is resource_exhausted. The caller publishes the file.
#pragma once

#include <vector>

#include "io/bytes_done.hpp"
#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/output_file.hpp"

namespace capstan::io {

/// HDF5 with whole contiguous datasets at the paths of a checkpoint, and the index that capstan::Model reads.
void export_model(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                  const BytesDone& done);

/// numpy's format of one array. bfloat16, which numpy has not, becomes float32.
void export_npy(const CheckpointReader& from, const ArrayInfo& array, OutputFile& to, const BytesDone& done);

/// numpy's archive of arrays: values by the name of the variable, slots as "<variable>/slots/<slot>". As
/// above.
void export_npz(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                const BytesDone& done);

/// The HDF5 weights of Keras 2, which Keras 3 reads too: a layer for each first component of the variables'
/// names. In a layer, weights have Keras's order where their names are Keras's, and else the order of
/// `arrays`; values only. bfloat16 becomes float32.
void export_keras(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                  const BytesDone& done);

}  // namespace capstan::io
