// model.cpp -- HDF5 lays out the file, write_at() fills its datasets, and the model index is appended.
#include <cstring>

#include "io/checksum.hpp"
#include "io/export/export.hpp"
#include "io/hdf5/hdf5_layout.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/model_file.hpp"
#include "io/hdf5/table_parts.hpp"
#include "io/hdf5/verify.hpp"
#include "io/key_index.hpp"

namespace capstan::io {
namespace {

std::vector<Hdf5Attribute> attributes_of(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays) {
  std::vector<Hdf5Attribute> attributes{{"/", "format", std::string(kModelFormat)},
                                        {"/", "version", std::int64_t{kModelVersion}},
                                        {"/", "step", from.step()}};
  for (const ArrayInfo& array : arrays) {
    if (array.component != kValue) continue;
    const std::string group = "variables/" + array.variable;
    attributes.push_back({group, "dtype", std::string(to_string(array.dtype))});
    attributes.push_back({group, "shape", array.shape});
  }
  return attributes;
}

/// Adds an index after the keys of each dynamic table.
std::vector<ArrayInfo> with_indexes(const std::vector<ArrayInfo>& arrays) {
  std::vector<ArrayInfo> all;
  for (const ArrayInfo& array : arrays) {
    all.push_back(array);
    if (array.component == kTableKeys)
      all.push_back({array.variable, kTableIndex, DType::int64, {key_index_slots(array.shape.at(0))}});
  }
  return all;
}

/// `bytes`: not empty, any number of complete keys.
void append_keys(std::string_view bytes, std::vector<std::int64_t>& keys) {
  const std::size_t before = keys.size();
  keys.resize(before + bytes.size() / sizeof keys[0]);
  std::memcpy(keys.data() + before, bytes.data(), bytes.size());
}

}  // namespace

void export_model(const CheckpointReader& from, const std::vector<ArrayInfo>& of_checkpoint, OutputFile& to,
                  const ProgressCallback& progress) {
  const std::vector<ArrayInfo> arrays = with_indexes(of_checkpoint);
  std::vector<Hdf5Dataset> datasets;
  for (const ArrayInfo& array : arrays) {
    datasets.push_back({dataset_path(array.variable, array.component), array.dtype, array.shape});
  }
  const auto offsets = lay_out_hdf5(to.temporary(), datasets, attributes_of(from, arrays));
  ModelIndex index{.step = from.step(), .user_state = from.user_state()};
  index.contents.bytes = file_bytes(to.temporary());
  std::vector<std::int64_t> keys;  // of the table whose index follows
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ArrayInfo& array = arrays[i];
    Checksum sum;
    std::uint64_t at = offsets[i];
    const auto write = [&](std::string_view piece) {
      to.write_at(at, piece);
      sum.add(piece.data(), piece.size());
      at += piece.size();
    };
    if (array.component == kTableIndex) {
      const std::vector<std::int64_t> slots = make_key_index(keys);
      write({reinterpret_cast<const char*>(slots.data()), slots.size() * sizeof slots[0]});
    } else {
      keys.clear();
      read_exported(from, array, /*widen=*/false, progress, [&](std::string_view piece) {
        write(piece);
        if (array.component == kTableKeys) append_keys(piece, keys);
      });
    }
    index.contents.datasets.push_back({.variable = array.variable,
                                       .component = array.component,
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
