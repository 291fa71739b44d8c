// array_stream.hpp -- sequential read of one array of a checkpoint, from its first row to its last.
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

#include "io/checksum.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "io/progress_callback.hpp"

namespace capstan::io {

/// Chunk size: large enough for efficient disk reads, small enough for a cache.
inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

/// A variable's values, or one of its slots.
struct ArrayInfo {
  std::string variable = {};
  std::string component = kValue;
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape = {};

  std::uint64_t bytes() const noexcept;
};

/// Returns all arrays, in the order of `variables`; the slots of a variable follow its values.
std::vector<ArrayInfo> arrays_of(std::span<const VariableInfo> variables, bool with_slots);

std::uint64_t bytes_of(std::span<const ArrayInfo> arrays) noexcept;

/// The bytes of an array, in the order of its rows.
class ArraySource {
 public:
  virtual ~ArraySource() = default;
  virtual const ArrayInfo& array() const noexcept = 0;
  /// Fills `out` until it is full or the array ends; returns the number of bytes, 0 at the end. Throws
  /// Error(data_loss) that names file and dataset if the checksum of a completely read dataset differs.
  virtual std::size_t read(std::span<char> out) = 0;

 protected:
  ArraySource() = default;
  ArraySource(ArraySource&&) = default;
};

/// Verifies checksums as it reads: reading an array to its end verifies it. Keeps no file open between reads,
/// so that a stream per array is possible. One thread at a time.
class ArrayStream final : public ArraySource {
 public:
  /// For an increment, streams the rows of its base with the changed rows applied. Keeps no reference to
  /// `from`.
  ArrayStream(const CheckpointReader& from, const ArrayInfo& array);

  ArrayStream(ArrayStream&&) noexcept;
  ~ArrayStream() override;

  const ArrayInfo& array() const noexcept override { return array_; }
  std::size_t read(std::span<char> out) override;

 private:
  struct Piece {
    std::filesystem::path file;
    DatasetReport dataset;
  };
  /// State for an increment: its changed rows and the stream of its base.
  struct Patched;

  std::size_t read_pieces(std::span<char> out);

  ArrayInfo array_;
  std::vector<Piece> pieces_;         // by row
  std::size_t next_ = 0;              // index of the current piece
  std::uint64_t done_ = 0;            // bytes read of the current piece
  Checksum sum_;                      // checksum of the bytes read of the current piece
  std::unique_ptr<Patched> patched_;  // null unless the checkpoint is an increment
};

/// Passes the complete array to `sink`, reading kPieceBytes at a time. With `widen`, converts bfloat16 to
/// float32.
void read_array(ArraySource& from, bool widen, const ProgressCallback& progress,
                const std::function<void(std::string_view piece)>& sink);

}  // namespace capstan::io
