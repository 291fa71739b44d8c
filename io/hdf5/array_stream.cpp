// array_stream.cpp -- one dataset after the other, by the offsets of the manifest.
#include "io/hdf5/array_stream.hpp"

#include <algorithm>
#include <cstring>

#include "capstan/half.hpp"
#include "io/file.hpp"
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

ArrayStream::ArrayStream(const std::filesystem::path& folder, const Manifest& manifest,
                         const ArrayInfo& array)
    : array_(array) {
  for (const PartReport& part : manifest.parts) {
    for (const DatasetReport& dataset : part.datasets) {
      const bool ours = dataset.variable == array.variable && dataset.which == array.which;
      if (ours && data_bytes(dataset) > 0) pieces_.push_back({folder / part.file, dataset});
    }
  }
  std::sort(pieces_.begin(), pieces_.end(),
            [](const Piece& a, const Piece& b) { return a.dataset.first_row < b.dataset.first_row; });
}

std::size_t ArrayStream::read(std::span<char> out) {
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
    check_sum(piece.file, dataset_path(piece.dataset.variable, piece.dataset.which), sum_.hex(),
              piece.dataset.xxh3);
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

void read_array(ArrayStream& from, bool widen, const BytesDone& done,
                const std::function<void(std::string_view piece)>& sink) {
  const bool widens = widen && from.array().dtype == DType::bfloat16;
  std::vector<char> piece(std::min<std::uint64_t>(kPieceBytes, from.array().bytes()));
  std::vector<float> floats;
  while (const std::size_t bytes = from.read(piece)) {
    const std::span<const char> read(piece.data(), bytes);
    sink(widens ? widened(read, floats) : std::string_view(read.data(), read.size()));
    if (done) done(bytes);
  }
}

}  // namespace capstan::io
