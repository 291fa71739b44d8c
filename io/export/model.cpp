// model.cpp -- HDF5 creates the layout, plain writes fill it, and the index follows.
#include "io/checksum.hpp"
#include "io/export/export.hpp"
#include "io/hdf5/hdf5_layout.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/model_file.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {
namespace {

std::vector<Hdf5Attribute> attributes_of(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays) {
  std::vector<Hdf5Attribute> attributes{{"/", "format", std::string(kModelFormat)},
                                        {"/", "version", std::int64_t{kModelVersion}},
                                        {"/", "step", from.step()}};
  for (const ArrayInfo& array : arrays) {
    if (array.which != kValue) continue;
    const std::string group = "variables/" + array.variable;
    attributes.push_back({group, "dtype", std::string(to_string(array.dtype))});
    attributes.push_back({group, "shape", array.shape});
  }
  return attributes;
}

}  // namespace

void export_model(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                  const BytesDone& done) {
  std::vector<Hdf5Dataset> datasets;
  for (const ArrayInfo& array : arrays) {
    datasets.push_back({dataset_path(array.variable, array.which), array.dtype, array.shape});
  }
  const auto offsets = lay_out_hdf5(to.temporary(), datasets, attributes_of(from, arrays));
  ModelIndex index{.step = from.step()};
  index.contents.bytes = file_bytes(to.temporary());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ArrayInfo& array = arrays[i];
    Checksum sum;
    std::uint64_t at = offsets[i];
    ArrayStream stream(from, array);
    read_array(stream, /*widen=*/false, done, [&](std::string_view piece) {
      to.write_at(at, piece);
      sum.add(piece.data(), piece.size());
      at += piece.size();
    });
    index.contents.datasets.push_back({.variable = array.variable,
                                       .which = array.which,
                                       .dtype = array.dtype,
                                       .shape = array.shape,
                                       .rows = array.shape[0],
                                       .offset = offsets[i],
                                       .xxh3 = sum.hex()});
  }
  index.contents.metadata_xxh3 = metadata_checksum(to.temporary(), index.contents);
  to.write_at(index.contents.bytes, model_index_bytes(index));
}

}  // namespace capstan::io
