// changed_rows.hpp -- copies the changed rows of an increment over the rows of its base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "io/file.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Location of the rows of one array in one file of an increment.
struct ChangedRows {
  std::uint64_t numbers = 0;  // file offset of the row numbers: int64, strictly increasing
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  // file offset of the first row
  std::uint64_t row_bytes = 0;
};

/// Returns the location of `rows` and of their row numbers. REQUIRES: both datasets are in the same part.
ChangedRows changed_rows(const DatasetReport& numbers, const DatasetReport& rows);

/// Returns the dataset of `part` with the row numbers of `dataset`. Throws Error(invalid_argument) if there
/// is none.
const DatasetReport& numbers_of(const PartReport& part, const DatasetReport& dataset);

/// Copies the changed rows within [first, first + rows) to their positions in `out`, which starts with row
/// `first`. Errors name `path`. Throws Error(data_loss) if the row numbers do not increase.
void apply_changed_rows(const FileDescriptor& from, const std::filesystem::path& path,
                        const ChangedRows& changed, std::uint64_t first, std::uint64_t rows, std::byte* out);

}  // namespace capstan::io
