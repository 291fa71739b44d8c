// layout.hpp -- names and constants of checkpoint format versions 1 and 2 (docs/checkpoint_format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

inline constexpr std::string_view kFormatName = "capstan-checkpoint";
inline constexpr int kFormatVersion = 1;
inline constexpr int kIncrementVersion = 2;  // so that readers of version 1 reject an increment

inline constexpr const char* kMasterFile = "checkpoint.h5";
inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kManifestSumFile = "manifest.xxh3";
inline constexpr const char* kLatestFile = "latest";
inline constexpr const char* kRetainedFile = "kept.json";  // see RetainedCheckpoints

// Suffixes of directories that are not, or no longer, a checkpoint.
inline constexpr std::string_view kUnfinished = ".tmp";
inline constexpr std::string_view kDeleted = ".deleted";
inline constexpr std::string_view kReplaced = ".replaced";

/// Directory into which FastLevel::recover copies a checkpoint that a killed job left in the fast level.
inline constexpr const char* kRecoveredDirectory = "rescued.tmp";

/// Returns a name such as "checkpoint-00000012".
std::string checkpoint_name(std::int64_t step);
/// Returns the step of such a name, and nothing for any other name.
std::optional<std::int64_t> step_of_name(std::string_view name);

struct PartNumber {
  std::int64_t index = 0;
  std::int64_t count = 0;
};
/// Parses "part-00000-of-00002.h5" or "part-00000-of-00002-9f86d081884c7d65.h5", and no other name.
std::optional<PartNumber> part_of_name(std::string_view name);

/// Returns "variables/entities/embedding/value" or "variables/entities/embedding/slots/m".
std::string dataset_path(std::string_view variable, std::string_view component);

/// Throws Error(invalid_argument) unless `component` is a name (base/name.hpp) of one component: "value", or
/// a slot.
void check_component(std::string_view component);
/// Throws Error(invalid_argument) if the HDF5 paths of two variables collide: "a" collides with "a/value/b"
/// and "a/slots", and in an increment also with "a/changed_rows". REQUIRES: `names` is sorted.
void check_no_collisions(std::span<const std::string> names, bool increment = false);
/// Throws Error(invalid_argument) if variable `added` collides with one of `names`, in a full checkpoint or
/// in an increment. REQUIRES: `names` do not collide with each other.
void check_no_collision_with(const std::set<std::string>& names, const std::string& added);
/// Throws Error(invalid_argument), which names `array`, unless the rank is 1 to 32 and the size is less than
/// 2^63 bytes.
void check_shape(std::string_view array, std::span<const std::uint64_t> shape, DType dtype);

std::optional<DType> dtype_of_name(std::string_view name);

/// Bytes of one row.
std::uint64_t row_bytes(std::span<const std::uint64_t> shape, DType dtype) noexcept;

/// Fill value of a virtual dataset where a part is missing: a NaN, or the smallest integer. Never zero, so
/// that a missing part cannot pass for data.
std::uint64_t missing_value_bits(DType dtype) noexcept;

}  // namespace capstan::io
