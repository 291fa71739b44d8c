// array_stream.cpp -- reads one dataset after the other at the offsets in the manifest.
#include "io/hdf5/array_stream.hpp"

#include <algorithm>
#include <cstring>

#include "capstan/dtype.hpp"
#include "io/file.hpp"
#include "io/hdf5/changed_rows.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan::io {

std::uint64_t ArrayInfo::bytes() const noexcept { return shape.at(0) * row_bytes(shape, dtype); }

std::vector<ArrayInfo> arrays_of(std::span<const VariableInfo> variables, bool with_slots) {
  std::vector<ArrayInfo> arrays;
  for (const VariableInfo& variable : variables) {
    arrays.push_back({variable.name, kValue, variable.dtype, variable.shape});
    if (!with_slots) continue;
    for (const SlotInfo& slot : variable.slots) {
      arrays.push_back({variable.name, slot.name, slot.dtype, slot.shape});
    }
  }
  return arrays;
}

std::uint64_t bytes_of(std::span<const ArrayInfo> arrays) noexcept {
  std::uint64_t bytes = 0;
  for (const ArrayInfo& array : arrays) bytes += array.bytes();
  return bytes;
}

/// Merges the rows of the base with the changed rows of an increment.
struct ArrayStream::Patched {
  struct Changes {
    std::filesystem::path file;
    DatasetReport numbers;
    DatasetReport rows;
  };

  Patched(const CheckpointReader& from, const ArrayInfo& array)
      : bytes_per_row(row_bytes(array.shape, array.dtype)), rows(array.shape.at(0)) {
    if (from.base_has(array.variable, array.component))
      base = std::make_unique<ArrayStream>(*from.base(), array);
    for (const PartReport& part : from.parts()) {
      for (const DatasetReport& dataset : part.datasets) {
        if (dataset.variable == array.variable && dataset.component == array.component)
          changes.push_back({from.directory() / part.file, numbers_of(part, dataset), dataset});
      }
    }
  }

  std::size_t read(std::span<char> out) {
    if (bytes_per_row == 0) return 0;
    std::size_t filled = 0;
    while (filled < out.size()) {
      const std::span<char> rest = out.subspan(filled);
      std::size_t bytes = std::min(rest.size(), buffer.size() - used);
      if (bytes > 0) {
        std::memcpy(rest.data(), buffer.data() + used, bytes);
        used += bytes;
      } else if (rest.size() >= bytes_per_row) {
        bytes = fill(rest);
        if (bytes == 0) break;
      } else {
        buffer.resize(bytes_per_row);
        buffer.resize(fill(buffer));
        used = 0;
        if (buffer.empty()) break;
      }
      filled += bytes;
    }
    return filled;
  }

  /// Reads as many complete rows as fit; returns their size in bytes, 0 at the end. REQUIRES: one row fits.
  std::size_t fill(std::span<char> to) {
    if (next == 0) verify();
    const std::uint64_t count = std::min<std::uint64_t>(rows - next, to.size() / bytes_per_row);
    const std::span<char> out = to.first(count * bytes_per_row);
    if (base) (void)base->read(out);
    for (const Changes& changed : changes) {
      const std::uint64_t begin = std::max(next, changed.rows.first_row);
      const std::uint64_t end = std::min(next + count, changed.rows.first_row + changed.rows.rows);
      if (begin >= end) continue;
      apply_changed_rows(open_to_read(changed.file), changed.file,
                         changed_rows(changed.numbers, changed.rows), begin, end - begin,
                         reinterpret_cast<std::byte*>(out.data()) + (begin - next) * bytes_per_row);
    }
    next += count;
    return out.size();
  }

  void verify() const {
    for (const Changes& changed : changes) {
      const FileDescriptor file = open_to_read(changed.file);
      for (const DatasetReport* dataset : {&changed.numbers, &changed.rows}) {
        check_dataset(file, changed.file, dataset->offset, data_bytes(*dataset), dataset->xxh3,
                      dataset_path(dataset->variable, dataset->component));
      }
    }
  }

  std::unique_ptr<ArrayStream> base = {};  // null if the base lacks the array
  std::vector<Changes> changes = {};
  std::uint64_t bytes_per_row;
  std::uint64_t rows;
  std::vector<char> buffer = {};  // one row, for reads of less than a row
  std::size_t used = 0;           // bytes consumed of the buffer
  std::uint64_t next = 0;         // next row to read
};

ArrayStream::ArrayStream(const CheckpointReader& from, const ArrayInfo& array) : array_(array) {
  if (from.base() != nullptr) {
    patched_ = std::make_unique<Patched>(from, array);
    return;
  }
  for (const PartReport& part : from.parts()) {
    for (const DatasetReport& dataset : part.datasets) {
      const bool ours = dataset.variable == array.variable && dataset.component == array.component;
      if (ours && data_bytes(dataset) > 0) pieces_.push_back({from.directory() / part.file, dataset});
    }
  }
  std::sort(pieces_.begin(), pieces_.end(),
            [](const Piece& a, const Piece& b) { return a.dataset.first_row < b.dataset.first_row; });
}

ArrayStream::ArrayStream(ArrayStream&&) noexcept = default;
ArrayStream::~ArrayStream() = default;

std::size_t ArrayStream::read(std::span<char> out) {
  return patched_ ? patched_->read(out) : read_pieces(out);
}

std::size_t ArrayStream::read_pieces(std::span<char> out) {
  std::size_t filled = 0;
  while (filled < out.size() && next_ < pieces_.size()) {
    const Piece& piece = pieces_[next_];
    const std::uint64_t left = data_bytes(piece.dataset) - done_;
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size() - filled));
    read_at(open_to_read(piece.file), piece.file, piece.dataset.offset + done_, out.data() + filled, bytes);
    sum_.add(out.data() + filled, bytes);
    filled += bytes;
    done_ += bytes;
    if (bytes < left) continue;
    require_same_checksum(piece.file, dataset_path(piece.dataset.variable, piece.dataset.component),
                          sum_.hex(), piece.dataset.xxh3);
    sum_ = Checksum();
    done_ = 0;
    ++next_;
  }
  return filled;
}

namespace {

std::string_view widened(std::span<const char> halves, std::vector<float>& out) {
  out.resize(halves.size() / sizeof(std::uint16_t));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, halves.data() + i * sizeof(bits), sizeof(bits));
    out[i] = static_cast<float>(bfloat16::from_bits(bits));
  }
  return {reinterpret_cast<const char*>(out.data()), out.size() * sizeof(float)};
}

}  // namespace

void read_array(ArraySource& from, bool widen, const ProgressCallback& progress,
                const std::function<void(std::string_view piece)>& sink) {
  const bool widens = widen && from.array().dtype == DType::bfloat16;
  std::vector<char> piece(std::min<std::uint64_t>(kPieceBytes, from.array().bytes()));
  std::vector<float> floats;
  while (const std::size_t bytes = from.read(piece)) {
    const std::span<const char> read(piece.data(), bytes);
    sink(widens ? widened(read, floats) : std::string_view(read.data(), read.size()));
    if (progress) progress(bytes);
  }
}

}  // namespace capstan::io
