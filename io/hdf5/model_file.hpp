// model_file.hpp -- the file that serves a model: HDF5 with an index behind it (docs/checkpoints.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

inline constexpr std::string_view kModelFormat = "capstan-model";
inline constexpr int kModelVersion = 1;

/// What the index says: `contents` is the HDF5 file in front of it, with every array whole.
struct ModelIndex {
  std::int64_t step = 0;
  PartReport contents = {};  // `file` is empty
};

/// The bytes behind the HDF5 file: the index and the tail that finds and checks it.
std::string model_index_bytes(const ModelIndex& index);

/// Ends as a model does, whole or not.
bool looks_like_model(const std::filesystem::path& file) noexcept;

/// Reads and checks the index of `file`, which is open as `from`; reads no arrays. Throws Error data_loss
/// naming file and fault.
ModelIndex read_model_index(const FileDescriptor& from, const std::filesystem::path& file);

}  // namespace capstan::io
