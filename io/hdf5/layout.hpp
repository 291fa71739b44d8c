// layout.hpp -- names and numbers of checkpoint format versions 1 and 2 (docs/checkpoint_format.md).
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
inline constexpr int kIncrementVersion = 2;  // who reads version 1 alone must not take it for a whole one

inline constexpr const char* kMasterFile = "checkpoint.h5";
inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kManifestSumFile = "manifest.xxh3";
inline constexpr const char* kLatestFile = "latest";
inline constexpr const char* kKeptFile = "kept.json";

// Suffixes of folders that are not, or no longer, a checkpoint.
inline constexpr std::string_view kUnfinished = ".tmp";
inline constexpr std::string_view kDeleted = ".deleted";
inline constexpr std::string_view kReplaced = ".replaced";

/// The folder in which a checkpoint from the fast level is put together.
inline constexpr const char* kRescued = "rescued.tmp";

/// "checkpoint-00000012".
std::string checkpoint_name(std::int64_t step);
/// The step of exactly such a name; nothing for any other.
std::optional<std::int64_t> step_of_name(std::string_view name);

struct PartNumber {
  std::int64_t index = 0;
  std::int64_t count = 0;
};
/// Of "part-00000-of-00002.h5" or "part-00000-of-00002-9f86d081884c7d65.h5", and nothing else.
std::optional<PartNumber> part_of_name(std::string_view name);

/// "variables/entities/embedding/value", "variables/entities/embedding/slots/m".
std::string dataset_path(std::string_view variable, std::string_view which);

/// Throws Error(invalid_argument) unless `which` is a name (base/name.hpp) of one component: "value", or a
/// slot.
void check_which(std::string_view which);
/// Refuses "a" beside "a/value/b" or "a/slots", in an increment also "a/changed_rows", whose datasets would
/// lie inside one another. `names` is sorted.
void check_names_apart(std::span<const std::string> names, bool increment = false);
/// Throws Error(invalid_argument) unless variable `added` can be in one checkpoint, increments included, with
/// `names`, which can be in one themselves.
void check_name_apart(const std::set<std::string>& names, const std::string& added);
/// Rank 1 or 2, no zero, element count in 63 bits.
void check_shape(std::string_view array, std::span<const std::uint64_t> shape, DType dtype);

std::optional<DType> dtype_of_name(std::string_view name);

/// Bytes of one row.
std::uint64_t row_bytes(std::span<const std::uint64_t> shape, DType dtype) noexcept;

/// What a virtual dataset shows where a part is missing: a NaN, or the smallest integer. Never zero, so a
/// missing part cannot pass for data.
std::uint64_t missing_value_bits(DType dtype) noexcept;

}  // namespace capstan::io
