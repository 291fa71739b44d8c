// npy.cpp -- a magic number, a length, and a Python dictionary literal.
#include "io/export/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <string_view>

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "io/export/export.hpp"
#include "io/file.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kAlignment = 64;

std::string_view descr_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "<f4";
    case DType::float64:
      return "<f8";
    case DType::int64:
      return "<i8";
    case DType::int32:
      return "<i4";
    case DType::float16:
      return "<f2";
    case DType::boolean:
      return "|b1";
    case DType::bfloat16:
      break;
  }
  CAPSTAN_ASSERT(!"a dtype of numpy");
  return {};
}

Error refused(const std::filesystem::path& file, Code code, std::string_view fault) {
  return Error(code, fmt::format("{}: {}", file.string(), fault));
}

/// Returns the text that follows 'key': in the dictionary; "" if the key is missing.
std::string_view value_of(std::string_view dictionary, std::string_view key) {
  const std::string quoted = fmt::format("'{}':", key);
  const auto at = dictionary.find(quoted);
  if (at == std::string_view::npos) return {};
  const auto begin = dictionary.find_first_not_of(' ', at + quoted.size());
  return begin == std::string_view::npos ? std::string_view() : dictionary.substr(begin);
}

/// Parses "(3, 4), ..."; returns false if the text is not a tuple of numbers.
bool parse_shape(std::string_view text, std::vector<std::uint64_t>& shape) {
  const auto end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return false;
  text = text.substr(1, end - 1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
    if (text.empty()) return true;
    std::uint64_t size = 0;
    const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc{}) return false;
    shape.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(next - text.data()));
    if (!text.empty() && text.front() != ',' && text.front() != ' ') return false;
  }
}

DType dtype_of_descr(const std::filesystem::path& file, std::string_view value) {
  for (const DType dtype : kDTypes) {
    if (numpy_dtype(dtype) == dtype && value.starts_with(fmt::format("'{}'", descr_of(dtype)))) return dtype;
  }
  const auto end = value.empty() ? 0 : value.find(value.front(), 1);
  throw refused(
      file, Code::invalid_argument,
      fmt::format(
          "elements are {}, expected little-endian float16, float32, float64, int32, int64 or bool; convert "
          "them with numpy's astype",
          value.starts_with('\'') && end != std::string_view::npos ? value.substr(0, end + 1)
                                                                   : "structured"));
}

NpyHead parse_dictionary(const std::filesystem::path& file, std::string_view dictionary) {
  NpyHead head;
  const std::string_view order = value_of(dictionary, "fortran_order");
  if (!parse_shape(value_of(dictionary, "shape"), head.shape) ||
      !(order.starts_with("True") || order.starts_with("False")) || value_of(dictionary, "descr").empty()) {
    throw refused(file, Code::data_loss, fmt::format("damaged .npy header: {}", dictionary));
  }
  head.dtype = dtype_of_descr(file, value_of(dictionary, "descr"));
  if (order.starts_with("True") && head.shape.size() > 1) {
    throw refused(file, Code::invalid_argument,
                  "the array is column-major, expected row-major; save numpy.ascontiguousarray(array)");
  }
  return head;
}

}  // namespace

DType numpy_dtype(DType dtype) noexcept { return dtype == DType::bfloat16 ? DType::float32 : dtype; }

std::string npy_head(DType dtype, const std::vector<std::uint64_t>& shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 descr_of(dtype), fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // Version 1 has a 16-bit length: 32 dimensions of 20 digits fit.
  const std::size_t bytes = kMagic.size() + 4 + text.size() + 1;
  text += std::string((kAlignment - bytes % kAlignment) % kAlignment, ' ') + "\n";
  std::string head(kMagic);
  head += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return head + text;
}

NpyHead read_npy_head(const std::filesystem::path& path) {
  const FileDescriptor file = open_to_read(path);
  const std::uint64_t bytes = file_bytes(file, path);
  std::array<unsigned char, 12> start{};
  if (bytes >= start.size()) read_at(file, path, 0, start.data(), start.size());
  if (std::string_view(reinterpret_cast<const char*>(start.data()), kMagic.size()) != kMagic) {
    throw refused(path, Code::data_loss, "not a .npy file");
  }
  const unsigned version = start[6];
  if (version < 1 || version > 3) {
    throw refused(path, Code::data_loss, fmt::format(".npy format version {}, expected 1 to 3", version));
  }
  const std::uint64_t before = version == 1 ? 10 : 12;
  std::uint64_t length = start[8] | std::uint64_t{start[9]} << 8;
  if (version > 1) length |= std::uint64_t{start[10]} << 16 | std::uint64_t{start[11]} << 24;
  if (length > bytes - before) throw refused(path, Code::data_loss, "the file ends within its .npy header");
  std::string dictionary(static_cast<std::size_t>(length), '\0');
  read_at(file, path, before, dictionary.data(), dictionary.size());
  NpyHead head = parse_dictionary(path, dictionary);
  head.offset = before + length;
  std::vector<std::uint64_t> shape = head.shape;
  if (shape.empty()) shape = {1};
  check_shape(path.string(), shape, head.dtype);
  if (const std::uint64_t needed = shape[0] * row_bytes(shape, head.dtype); needed != bytes - head.offset) {
    throw refused(path, Code::data_loss,
                  fmt::format("{} bytes of elements, expected {} for shape ({})", bytes - head.offset, needed,
                              fmt::join(head.shape, ", ")));
  }
  return head;
}

void export_npy(const CheckpointReader& from, const ArrayInfo& array, OutputFile& to,
                const ProgressCallback& progress) {
  to.append(npy_head(numpy_dtype(array.dtype), array.shape));
  read_exported(from, array, /*widen=*/true, progress, [&](std::string_view piece) { to.append(piece); });
}

}  // namespace capstan::io
