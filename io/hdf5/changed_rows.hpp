// changed_rows.hpp -- the rows of an increment, put in place over those of its base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Where in one file of an increment rows of an array lie.
struct ChangedRows {
  std::uint64_t numbers = 0;  // offset of the first row's number; each an int64, larger than the one before
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  // of the first row's bytes
  std::uint64_t row_bytes = 0;
};

/// Of a dataset and that of its rows' numbers, in the same part.
ChangedRows changed_rows(const DatasetReport& numbers, const DatasetReport& rows);

/// The numbers of the rows that `dataset` has, among the datasets of its part. Throws
/// Error(invalid_argument) when they are not there.
const DatasetReport& numbers_of(const PartReport& part, const DatasetReport& dataset);

/// Copies those of rows [first, first + rows) that are there to their places in `out`, of which the first
/// byte is that of row `first`. `path` is for messages. Throws Error(data_loss) when numbers do not rise.
void apply_changed_rows(const FileDescriptor& from, const std::filesystem::path& path,
                        const ChangedRows& changed, std::uint64_t first, std::uint64_t rows, std::byte* out);

}  // namespace capstan::io
