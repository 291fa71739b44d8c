// changed_rows.cpp -- binary search in the row numbers, then sequential reads of the rows.
#include "io/hdf5/changed_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "capstan/error.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

constexpr std::uint64_t kNumbersPerRead = std::uint64_t{64} << 10;
constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;

/// Returns the index of the first row number that is `row` or more.
std::uint64_t first_at_least(const FileDescriptor& from, const std::filesystem::path& path,
                             const ChangedRows& changed, std::uint64_t row) {
  std::uint64_t begin = 0, end = changed.count;
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    std::uint64_t number = 0;
    read_at(from, path, changed.numbers + middle * sizeof(number), &number, sizeof(number));
    if (number < row) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

/// Reads a chunk of row numbers from index `begin` and keeps those below `past`. Throws Error(data_loss)
/// unless they increase and are at least `least`.
void read_numbers(const FileDescriptor& from, const std::filesystem::path& path, const ChangedRows& changed,
                  std::uint64_t begin, std::uint64_t least, std::uint64_t past,
                  std::vector<std::uint64_t>& numbers) {
  // The numbers strictly increase, so at most `past - least` of them are below `past`.
  numbers.resize(std::min({kNumbersPerRead, changed.count - begin, past - least}));
  read_at(from, path, changed.numbers + begin * sizeof(std::uint64_t), numbers.data(),
          numbers.size() * sizeof(std::uint64_t));
  const bool increasing =
      std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end();
  if (!increasing || numbers.front() < least) {
    throw Error(Code::data_loss,
                fmt::format("{} is damaged: the numbers of changed rows do not increase", path.string()));
  }
  numbers.erase(std::lower_bound(numbers.begin(), numbers.end(), past), numbers.end());
}

}  // namespace

ChangedRows changed_rows(const DatasetReport& numbers, const DatasetReport& rows) {
  return {numbers.offset, rows.stored(), rows.offset, row_bytes(rows.shape, rows.dtype)};
}

const DatasetReport& numbers_of(const PartReport& part, const DatasetReport& dataset) {
  for (const DatasetReport& other : part.datasets) {
    if (other.variable == dataset.variable && other.component == kChangedRows) return other;
  }
  throw Error(Code::invalid_argument,
              fmt::format("{} has no row numbers of \"{}\"", part.file, dataset.variable));
}

void apply_changed_rows(const FileDescriptor& from, const std::filesystem::path& path,
                        const ChangedRows& changed, std::uint64_t first, std::uint64_t rows, std::byte* out) {
  if (changed.count == 0 || changed.row_bytes == 0) return;
  const std::uint64_t rows_per_read = std::max<std::uint64_t>(1, kReadBytes / changed.row_bytes);
  std::vector<std::uint64_t> numbers;
  std::vector<std::byte> piece;
  std::uint64_t at = first_at_least(from, path, changed, first);
  std::uint64_t least = first;
  while (at < changed.count && least < first + rows) {
    read_numbers(from, path, changed, at, least, first + rows, numbers);
    if (numbers.empty()) return;
    least = numbers.back() + 1;
    for (std::uint64_t done = 0; done < numbers.size();) {
      const std::uint64_t count = std::min<std::uint64_t>(rows_per_read, numbers.size() - done);
      piece.resize(count * changed.row_bytes);
      read_at(from, path, changed.offset + (at + done) * changed.row_bytes, piece.data(), piece.size());
      for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(out + (numbers[done + i] - first) * changed.row_bytes,
                    piece.data() + i * changed.row_bytes, changed.row_bytes);
      }
      done += count;
    }
    at += numbers.size();
  }
}

}  // namespace capstan::io
