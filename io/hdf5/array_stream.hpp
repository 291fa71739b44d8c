// array_stream.hpp -- the bytes of one array of a checkpoint from its first row to its last, read from the
// parts as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/bytes_done.hpp"
#include "io/checksum.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// How much of an array is in memory at once: large enough for a disk, small enough for a cache.
inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

/// A variable's values, or one of its slots.
struct ArrayInfo {
  std::string variable = {};
  std::string which = kValue;
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};

  std::uint64_t bytes() const noexcept;
};

/// By name; the slots of a variable behind its values.
std::vector<ArrayInfo> arrays_of(std::span<const VariableInfo> variables, bool with_slots);

std::uint64_t bytes_of(std::span<const ArrayInfo> arrays) noexcept;

/// One thread at a time; no file stays open between two reads, so there may be one for each array. Compares
/// checksums on the way: who has read an array to its end has verified it.
class ArrayStream {
 public:
  /// Of an increment the rows of its base with those that changed in their places. Keeps nothing of `from`.
  ArrayStream(const CheckpointReader& from, const ArrayInfo& array);

  ArrayStream(ArrayStream&&) noexcept;
  ~ArrayStream();

  const ArrayInfo& array() const noexcept { return array_; }

  /// Fills `out`, or as much of it as there are bytes left; returns how many, 0 at the end. Throws Error
  /// data_loss that names file and dataset when the last byte of a dataset has been read and its checksum is
  /// another.
  std::size_t read(std::span<char> out);

 private:
  struct Piece {
    std::filesystem::path file;
    DatasetReport dataset;
  };
  /// Rows of an increment with those of its base.
  struct Patched;

  std::size_t read_pieces(std::span<char> out);

  ArrayInfo array_;
  std::vector<Piece> pieces_;  // by row
  std::size_t next_ = 0;       // the one that is read
  std::uint64_t done_ = 0;     // of the piece
  Checksum sum_;
  std::unique_ptr<Patched> patched_;  // null unless it is an increment
};

/// Gives `sink` the whole array in pieces of at most kPieceBytes. With `widen`, bfloat16 becomes float32.
void read_array(ArrayStream& from, bool widen, const BytesDone& done,
                const std::function<void(std::string_view piece)>& sink);

}  // namespace capstan::io
