// records.cpp -- binary files of fixed-size items: plain records, and IDX.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "capstan/readers.hpp"
#include "io/data/byte_stream.hpp"

namespace capstan {
namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;

/// Reads items of `item_bytes` bytes from offset `first` on, in blocks. `count` is the number of items; -1:
/// the items extend to the end of the file, except for `footer` bytes.
class ItemReader {
 public:
  explicit ItemReader(const std::filesystem::path& path) : stream_(path) {}

  io::ByteStream& stream() { return stream_; }
  void begin(std::uint64_t first, std::size_t item_bytes, std::int64_t count, std::size_t footer) {
    first_ = first;
    item_bytes_ = item_bytes;
    count_ = count;
    footer_ = footer;
    buffer_.resize(kBlockBytes);
    seek(0);
  }
  /// Returns the next item, valid until the next call, or null at the end.
  const char* next() {
    if (count_ >= 0 && at_ == static_cast<std::uint64_t>(count_)) {
      if (!checked_end_) require_end();
      return nullptr;
    }
    const std::size_t needed = item_bytes_ + (count_ < 0 ? footer_ : 0);
    while (end_ - begin_ < needed && fill()) {
    }
    const std::size_t left = end_ - begin_;
    if (left >= needed) {
      const char* item = buffer_.data() + begin_;
      begin_ += item_bytes_;
      ++at_;
      return item;
    }
    if (count_ < 0 && left == footer_) return nullptr;
    if (count_ >= 0) {
      throw Error(Code::data_loss, fmt::format("{}: the file ends within item {} of {}",
                                               stream_.path().string(), at_ + 1, count_));
    }
    throw Error(Code::data_loss, fmt::format("{}: {} bytes follow {} records of {} bytes, expected {}",
                                             stream_.path().string(), left, at_, item_bytes_, footer_));
  }
  std::uint64_t at() const { return at_; }
  void seek(std::uint64_t item) {
    stream_.seek(first_ + item * item_bytes_);
    begin_ = end_ = 0;
    at_ = item;
  }

 private:
  bool fill() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    // Grows with the bytes read, so that a wrong item size in a header cannot exhaust memory.
    if (end_ == buffer_.size()) buffer_.resize(2 * end_);
    const std::size_t got = stream_.read(buffer_.data() + end_, buffer_.size() - end_);
    end_ += got;
    return got > 0;
  }
  void require_end() {
    if (end_ != begin_ || fill()) {
      throw Error(Code::data_loss, fmt::format("{}: data follows the {} items, expected the end of the file",
                                               stream_.path().string(), count_));
    }
    checked_end_ = true;
  }

  io::ByteStream stream_;
  std::uint64_t first_ = 0, at_ = 0;
  std::size_t item_bytes_ = 0, footer_ = 0;
  std::int64_t count_ = -1;
  bool checked_end_ = false;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

/// Cursor of one file. `Make` converts the bytes of an item to a T; its constructor reads the file's header.
template <class T, class Make>
class ItemCursor final : public data::Cursor<T> {
 public:
  template <class... Args>
  explicit ItemCursor(const std::filesystem::path& path, const Args&... args)
      : reader_(path), make_(reader_, args...) {}
  std::optional<T> next() override {
    const char* item = reader_.next();
    if (item == nullptr) return std::nullopt;
    return make_(item);
  }
  void rewind() override { reader_.seek(0); }

 private:
  data::Kind kind() const noexcept override { return data::Kind::file; }
  void write_state(Writer& out) const override { capstan::write(out, reader_.at()); }
  void read_state(Reader& in) override { reader_.seek(capstan::read<std::uint64_t>(in)); }
  ItemReader reader_;
  Make make_;
};

class RecordOf {
 public:
  RecordOf(ItemReader& reader, std::int64_t bytes, RecordOptions options)
      : bytes_(static_cast<std::size_t>(bytes)) {
    const auto header = static_cast<std::size_t>(options.header_bytes);
    std::vector<char> skipped(header);
    reader.stream().read_exactly(skipped.data(), header);
    reader.begin(header, bytes_, -1, static_cast<std::size_t>(options.footer_bytes));
  }
  std::vector<std::byte> operator()(const char* item) const {
    const auto* first = reinterpret_cast<const std::byte*>(item);
    return {first, first + bytes_};
  }

 private:
  std::size_t bytes_;
};

/// An IDX element type: its code in the file, and its C++ name.
struct IdxType {
  unsigned char code;
  const char* name;
};
template <class T>
constexpr IdxType kIdxType{};
template <>
constexpr IdxType kIdxType<std::uint8_t>{0x08, "std::uint8_t"};
template <>
constexpr IdxType kIdxType<std::int8_t>{0x09, "std::int8_t"};
template <>
constexpr IdxType kIdxType<std::int16_t>{0x0b, "std::int16_t"};
template <>
constexpr IdxType kIdxType<std::int32_t>{0x0c, "std::int32_t"};
template <>
constexpr IdxType kIdxType<float>{0x0d, "float"};
template <>
constexpr IdxType kIdxType<double>{0x0e, "double"};

std::string idx_name(unsigned char code) {
  for (const IdxType& type : {kIdxType<std::uint8_t>, kIdxType<std::int8_t>, kIdxType<std::int16_t>,
                              kIdxType<std::int32_t>, kIdxType<float>, kIdxType<double>}) {
    if (type.code == code) return type.name;
  }
  return fmt::format("the unknown type {:#04x}", code);
}

/// Converts a big-endian number to the byte order of this machine.
template <class T>
T from_big_endian(const char* bytes) {
  std::array<char, sizeof(T)> in_order;
  std::memcpy(in_order.data(), bytes, sizeof(T));
  if constexpr (std::endian::native == std::endian::little) std::reverse(in_order.begin(), in_order.end());
  return std::bit_cast<T>(in_order);
}

template <class T>
class IdxItem {
 public:
  explicit IdxItem(ItemReader& reader) {
    io::ByteStream& stream = reader.stream();
    const std::string name = stream.path().string();
    std::array<char, 4> magic{};
    stream.read_exactly(magic.data(), magic.size());
    const auto code = static_cast<unsigned char>(magic[2]);
    const auto rank = static_cast<unsigned char>(magic[3]);
    if (magic[0] != 0 || magic[1] != 0 || rank == 0) {
      throw Error(Code::data_loss,
                  name + ": not an IDX file, expected 0, 0, a type and a rank of 1 or more at its start");
    }
    if (code != kIdxType<T>.code) {
      throw Error(Code::invalid_argument, fmt::format("{}: the elements are {}, expected {}", name,
                                                      idx_name(code), kIdxType<T>.name));
    }
    std::int64_t items = 0;
    for (unsigned axis = 0; axis < rank; ++axis) {
      std::array<char, 4> size{};
      stream.read_exactly(size.data(), size.size());
      const std::int64_t length = from_big_endian<std::uint32_t>(size.data());
      if (axis == 0) {
        items = length;
      } else {
        shape_.push_back(length);
      }
    }
    reader.begin(stream.offset(), item_bytes(name), items, 0);
    count_ = static_cast<std::size_t>(elements_of(shape_));
  }
  Array<T> operator()(const char* item) const {
    Array<T> array(shape_);
    for (std::size_t i = 0; i < count_; ++i) array.values[i] = from_big_endian<T>(item + i * sizeof(T));
    return array;
  }

 private:
  std::size_t item_bytes(const std::string& name) const {
    Shape bytes = shape_;
    bytes.push_back(sizeof(T));
    try {
      return static_cast<std::size_t>(elements_of(bytes));
    } catch (const Error& error) {
      throw Error(Code::data_loss, fmt::format("{}: {}", name, error.what()));
    }
  }
  Shape shape_;
  std::size_t count_ = 0;  // elements per item
};

}  // namespace

Dataset<std::vector<std::byte>> fixed_records(data::Paths files, std::int64_t record_bytes,
                                              RecordOptions options) {
  data::require_at_least(record_bytes, 1, "fixed_records: the record size in bytes");
  data::require_at_least(options.header_bytes, 0, "fixed_records: the header size in bytes");
  data::require_at_least(options.footer_bytes, 0, "fixed_records: the footer size in bytes");
  using Record = std::vector<std::byte>;
  return Dataset<Record>(detail::reader_with_recipe<&fixed_records>(
      std::make_shared<data::FilesNode<Record>>(std::move(files),
                                                [record_bytes, options](const std::filesystem::path& path) {
                                                  return std::make_unique<ItemCursor<Record, RecordOf>>(
                                                      path, record_bytes, options);
                                                }),
      record_bytes, options));
}

template <class T>
Dataset<Array<T>> idx(data::Paths files) {
  return Dataset<Array<T>>(detail::reader_with_recipe<&idx<T>>(
      std::make_shared<data::FilesNode<Array<T>>>(std::move(files), [](const std::filesystem::path& path) {
        return std::make_unique<ItemCursor<Array<T>, IdxItem<T>>>(path);
      })));
}

template Dataset<Array<std::uint8_t>> idx(data::Paths);
template Dataset<Array<std::int8_t>> idx(data::Paths);
template Dataset<Array<std::int16_t>> idx(data::Paths);
template Dataset<Array<std::int32_t>> idx(data::Paths);
template Dataset<Array<float>> idx(data::Paths);
template Dataset<Array<double>> idx(data::Paths);

}  // namespace capstan
