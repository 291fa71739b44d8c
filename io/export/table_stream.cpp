// table_stream.cpp -- reads states and rows of each part side by side.
#include "io/export/table_stream.hpp"

#include <algorithm>
#include <cstring>

#include "io/hdf5/layout.hpp"
#include "io/hdf5/table_parts.hpp"

namespace capstan::io {

TableStream::TableStream(const CheckpointReader& from, const ArrayInfo& array) : array_(array) {
  for (const VariableInfo* part : saved_table_parts(from, array.variable)) {
    ArrayInfo rows{part->name, array.component, array.dtype, array.shape};
    rows.shape.at(0) = part->shape.at(0);
    parts_.push_back({ArrayStream(from, {part->name, kTableStates, DType::int32, {part->shape.at(0)}}),
                      ArrayStream(from, rows), part->shape.at(0)});
  }
}

std::size_t TableStream::read(std::span<char> out) {
  std::size_t filled = 0;
  while (filled < out.size() && (used_ < buffer_.size() || fill())) {
    const std::size_t bytes = std::min(out.size() - filled, buffer_.size() - used_);
    std::memcpy(out.data() + filled, buffer_.data() + used_, bytes);
    used_ += bytes;
    filled += bytes;
  }
  return filled;
}

bool TableStream::fill() {
  const std::uint64_t row = row_bytes(array_.shape, array_.dtype);
  const std::uint64_t rows_of_piece =
      std::max<std::uint64_t>(1, kPieceBytes / std::max<std::uint64_t>(row, 1));
  std::size_t rows_in_use = 0;
  for (; part_ < parts_.size() && rows_in_use == 0; part_ += parts_[part_].left == 0 ? 1 : 0) {
    Part& part = parts_[part_];
    const std::uint64_t count = std::min(part.left, rows_of_piece);
    states_.resize(count);
    buffer_.resize(count * row);
    (void)part.states.read({reinterpret_cast<char*>(states_.data()), count * sizeof(std::uint32_t)});
    (void)part.rows.read(buffer_);
    part.left -= count;
    for (std::uint64_t i = 0; i < count; ++i) {
      if ((states_[i] & kRowInUse) == 0) continue;
      std::memmove(buffer_.data() + rows_in_use * row, buffer_.data() + i * row, row);
      ++rows_in_use;
    }
  }
  buffer_.resize(rows_in_use * row);
  used_ = 0;
  return rows_in_use > 0;
}

}  // namespace capstan::io
