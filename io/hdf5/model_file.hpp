// model_file.hpp -- the model file for serving: HDF5 followed by an index (docs/checkpoints.md).
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
/// `which` of the array with the index of a dynamic table's keys (io/key_index.hpp): int64.
inline constexpr const char* kTableIndex = "table_index";

/// Decoded index. `contents` describes the HDF5 file that precedes the index; each of its arrays is
/// contiguous.
struct ModelIndex {
  std::int64_t step = 0;
  PartReport contents = {};         // `file` is empty
  std::string user_state = "null";  // of the checkpoint, JSON
};

/// Returns the bytes that follow the HDF5 file: the index, and the tail with its size and checksum.
std::string model_index_bytes(const ModelIndex& index);

/// Returns true if the file ends with a valid tail; checks nothing else.
bool looks_like_model(const std::filesystem::path& file) noexcept;

/// Reads and checks the index of `file`, which is open as `from`; reads no arrays. Throws Error(data_loss)
/// that names the file and the fault.
ModelIndex read_model_index(const FileDescriptor& from, const std::filesystem::path& file);

}  // namespace capstan::io
