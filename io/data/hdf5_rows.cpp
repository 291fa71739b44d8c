// hdf5_rows.cpp -- dataset of the rows of HDF5 datasets, read in blocks.
#include <algorithm>

#include "capstan/readers.hpp"
#include "io/hdf5/row_reader.hpp"

namespace capstan {
namespace {

template <class T>
class RowCursor final : public data::Cursor<Array<T>> {
 public:
  RowCursor(const std::filesystem::path& path, const std::string& name)
      : reader_(path, name),
        rows_(static_cast<std::uint64_t>(reader_.shape()[0])),
        shape_(reader_.shape().begin() + 1, reader_.shape().end()),
        width_(static_cast<std::size_t>(elements_of(shape_))),
        block_rows_(std::max<std::uint64_t>(1, kBlockBytes / std::max<std::size_t>(1, width_ * sizeof(T)))) {}

  std::optional<Array<T>> next() override {
    if (at_ >= rows_) return std::nullopt;
    if (at_ < block_begin_ || at_ >= block_end_) {
      const std::uint64_t end = std::min(at_ + block_rows_, rows_);
      block_.resize(static_cast<std::size_t>(end - at_) * width_);
      if (width_ > 0) reader_.read(at_, end - at_, block_.data());
      block_begin_ = at_;
      block_end_ = end;
    }
    const auto first = block_.begin() + static_cast<std::ptrdiff_t>((at_++ - block_begin_) * width_);
    return Array<T>(shape_, {first, first + static_cast<std::ptrdiff_t>(width_)});
  }
  void rewind() override { at_ = 0; }

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  data::Kind kind() const noexcept override { return data::Kind::file; }
  void write_state(Writer& out) const override { capstan::write(out, at_); }
  void read_state(Reader& in) override { at_ = capstan::read<std::uint64_t>(in); }
  io::RowReader reader_;
  std::uint64_t rows_;
  Shape shape_;
  std::size_t width_;
  std::uint64_t block_rows_, block_begin_ = 0, block_end_ = 0, at_ = 0;
  std::vector<T> block_;
};

}  // namespace

template <class T>
Dataset<Array<T>> hdf5_rows(data::Paths files, std::string name) {
  return Dataset<Array<T>>(detail::reader_with_recipe<&hdf5_rows<T>>(
      std::make_shared<data::FilesNode<Array<T>>>(
          std::move(files),
          [name](const std::filesystem::path& path) { return std::make_unique<RowCursor<T>>(path, name); }),
      name));
}

template Dataset<Array<std::uint8_t>> hdf5_rows(data::Paths, std::string);
template Dataset<Array<std::int32_t>> hdf5_rows(data::Paths, std::string);
template Dataset<Array<std::int64_t>> hdf5_rows(data::Paths, std::string);
template Dataset<Array<float>> hdf5_rows(data::Paths, std::string);
template Dataset<Array<double>> hdf5_rows(data::Paths, std::string);

}  // namespace capstan
