// model.cpp -- a mapped file, and the index with the offset of each variable.
#include "capstan/model.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <utility>

#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/model_file.hpp"
#include "io/hdf5/verify.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// Read-only mapping of a complete file; data() is null if the file cannot be mapped.
class Mapping {
 public:
  Mapping(const io::FileDescriptor& file, std::uint64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    void* at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) return;
    data_ = static_cast<const char*>(at);
    // Read-ahead of rows that are not looked up would evict rows that are.
    (void)::madvise(at, bytes_, MADV_RANDOM);
  }
  ~Mapping() {
    if (data_ != nullptr) (void)::munmap(const_cast<char*>(data_), bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const char* data() const noexcept { return data_; }

 private:
  const char* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace

struct Model::Impl {
  fs::path path;
  io::FileDescriptor file;
  io::ModelIndex index;
  std::map<std::string, const io::DatasetReport*, std::less<>> variables;
  Mapping mapping;

  explicit Impl(const fs::path& from)
      : path(from),
        file(io::open_to_read(from)),
        index(io::read_model_index(file, from)),
        mapping(file, index.contents.bytes) {
    for (const io::DatasetReport& array : index.contents.datasets) {
      if (array.which == io::kValue) variables.emplace(array.variable, &array);
    }
  }

  const io::DatasetReport& variable(const std::string& name) const {
    if (const auto found = variables.find(name); found != variables.end()) return *found->second;
    std::string names;
    for (const auto& [other, array] : variables)
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", other);
    throw Error(Code::not_found, fmt::format("{} has no variable \"{}\"; it has {}", path.string(), name,
                                             names.empty() ? "none" : names));
  }

  const io::DatasetReport& variable(const std::string& name, DType dtype) const {
    const io::DatasetReport& array = variable(name);
    if (array.dtype == dtype) return array;
    throw Error(Code::invalid_argument,
                fmt::format("{}: variable \"{}\" is {}; it was read as {}", path.string(), name,
                            to_string(array.dtype), to_string(dtype)));
  }
};

Model::Model(const fs::path& file) : impl_(std::make_unique<const Impl>(file)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

bool Model::is_one(const fs::path& file) noexcept { return io::looks_like_model(file); }

void Model::verify() const {
  const io::PartReport& contents = impl_->index.contents;
  if (io::metadata_checksum(impl_->path, contents) != contents.metadata_xxh3) {
    throw Error(Code::data_loss,
                impl_->path.string() + " is damaged: the checksum of its HDF5 metadata differs");
  }
  io::check_part_data(impl_->path, contents);
}

const fs::path& Model::file() const noexcept { return impl_->path; }
std::int64_t Model::step() const noexcept { return impl_->index.step; }

std::vector<std::string> Model::variables() const {
  std::vector<std::string> names;
  for (const auto& [name, array] : impl_->variables) names.push_back(name);
  return names;
}

Shape Model::shape(const std::string& variable) const {
  const auto& shape = impl_->variable(variable).shape;
  return {shape.begin(), shape.end()};
}

DType Model::dtype(const std::string& variable) const { return impl_->variable(variable).dtype; }

Shape Model::shape_of_rows(const std::string& variable, DType dtype, std::int64_t first,
                           std::int64_t rows) const {
  const io::DatasetReport& array = impl_->variable(variable, dtype);
  Shape shape(array.shape.begin(), array.shape.end());
  if (first < 0 || rows < 0 || first > shape.at(0) || rows > shape.at(0) - first) {
    throw Error(Code::out_of_range,
                fmt::format("cannot read {} rows from row {} of \"{}\", which has {} rows", rows, first,
                            variable, shape.at(0)));
  }
  shape.at(0) = rows;
  return shape;
}

Shape Model::shape_of_lookup(const std::string& variable, DType dtype, std::size_t ids) const {
  const io::DatasetReport& array = impl_->variable(variable, dtype);
  Shape shape(array.shape.begin(), array.shape.end());
  shape.at(0) = static_cast<std::int64_t>(ids);
  return shape;
}

void Model::check_room(const Shape& shape, std::size_t room) {
  const std::int64_t elements = elements_of(shape);
  if (static_cast<std::size_t>(elements) == room) return;
  throw Error(Code::invalid_argument,
              fmt::format("a lookup of shape {} has {} elements, expected an output of that size; it has {}",
                          to_string(shape), elements, room));
}

void Model::read_bytes(const std::string& variable, std::int64_t first, std::int64_t rows, void* out) const {
  const io::DatasetReport& array = impl_->variable(variable);
  const std::uint64_t row = io::row_bytes(array.shape, array.dtype);
  // Not from the mapping, for which read-ahead is off (MADV_RANDOM).
  io::read_at(impl_->file, impl_->path, array.offset + static_cast<std::uint64_t>(first) * row, out,
              static_cast<std::size_t>(static_cast<std::uint64_t>(rows) * row));
}

void Model::lookup_bytes(const std::string& variable, std::span<const std::int64_t> ids, void* out) const {
  const io::DatasetReport& array = impl_->variable(variable);
  const std::uint64_t row = io::row_bytes(array.shape, array.dtype);
  for (const std::int64_t id : ids) {
    if (id >= 0 && static_cast<std::uint64_t>(id) < array.shape[0]) continue;
    throw Error(Code::out_of_range,
                fmt::format("id {} is out of range: \"{}\" has {} rows", id, variable, array.shape[0]));
  }
  const char* const mapped = impl_->mapping.data();
  auto* to = static_cast<char*>(out);
  for (const std::int64_t id : ids) {
    const std::uint64_t at = array.offset + static_cast<std::uint64_t>(id) * row;
    if (mapped != nullptr) {
      if (row > 0) std::memcpy(to, mapped + at, row);
    } else {
      io::read_at(impl_->file, impl_->path, at, to, row);
    }
    to += row;
  }
}

}  // namespace capstan
