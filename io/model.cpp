// model.cpp -- a mapped file, and the index with the offset of each variable.
#include "capstan/model.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/model_file.hpp"
#include "io/hdf5/table_parts.hpp"
#include "io/hdf5/verify.hpp"
#include "io/key_index.hpp"

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

namespace {

/// Finds the rows of a dynamic table. Copies its keys and index if the file is not mapped.
class TableKeys {
 public:
  TableKeys(const io::FileDescriptor& file, const fs::path& path, const Mapping& mapping,
            const io::DatasetReport& keys, const io::DatasetReport& index)
      : keys_(bytes_of(file, path, mapping, keys, copied_keys_)),
        reader_(bytes_of(file, path, mapping, index, copied_index_), index.rows, keys_, keys.rows),
        rows_(keys.rows) {}
  TableKeys(const TableKeys&) = delete;
  TableKeys& operator=(const TableKeys&) = delete;

  std::optional<std::uint64_t> find(std::int64_t key) const noexcept { return reader_.find(key); }
  std::vector<std::int64_t> all() const {
    std::vector<std::int64_t> keys(rows_);
    if (rows_ > 0) std::memcpy(keys.data(), keys_, rows_ * sizeof keys[0]);
    return keys;
  }

 private:
  static const char* bytes_of(const io::FileDescriptor& file, const fs::path& path, const Mapping& mapping,
                              const io::DatasetReport& array, std::vector<char>& copy) {
    if (mapping.data() != nullptr) return mapping.data() + array.offset;
    copy.resize(array.rows * sizeof(std::int64_t));
    io::read_at(file, path, array.offset, copy.data(), copy.size());
    return copy.data();
  }

  std::vector<char> copied_keys_;
  std::vector<char> copied_index_;
  const char* keys_;
  io::KeyIndexReader reader_;
  std::uint64_t rows_;
};

}  // namespace

struct Model::Impl {
  fs::path path;
  io::FileDescriptor file;
  io::ModelIndex index;
  std::map<std::string, const io::DatasetReport*, std::less<>> variables;
  Mapping mapping;
  std::map<std::string, std::unique_ptr<const TableKeys>, std::less<>> tables;

  explicit Impl(const fs::path& from)
      : path(from),
        file(io::open_to_read(from)),
        index(io::read_model_index(file, from)),
        mapping(file, index.contents.bytes) {
    for (const io::DatasetReport& array : index.contents.datasets) {
      if (array.component == io::kValue) variables.emplace(array.variable, &array);
    }
    for (const io::DatasetReport& array : index.contents.datasets) {
      if (array.component == io::kTableIndex) add_table(array);
    }
  }

  void add_table(const io::DatasetReport& slots) {
    const io::DatasetReport* keys = nullptr;
    for (const io::DatasetReport& array : index.contents.datasets) {
      if (array.variable == slots.variable && array.component == io::kTableKeys) keys = &array;
    }
    const io::DatasetReport& rows = variable(slots.variable);
    if (keys == nullptr || keys->dtype != DType::int64 || keys->rows != rows.rows ||
        slots.dtype != DType::int64 || slots.rows != io::key_index_slots(keys->rows)) {
      throw Error(
          Code::data_loss,
          fmt::format("{}: the keys or the index of dynamic table \"{}\" do not fit its {} rows; export "
                      "the checkpoint again",
                      path.string(), slots.variable, rows.rows));
    }
    tables.emplace(slots.variable, std::make_unique<TableKeys>(file, path, mapping, *keys, slots));
  }

  /// Returns null for a variable that is not a dynamic table.
  const TableKeys* table_or_null(const std::string& name) const {
    const auto found = tables.find(name);
    return found == tables.end() ? nullptr : found->second.get();
  }

  const TableKeys& table(const std::string& name) const {
    (void)variable(name);
    if (const TableKeys* const found = table_or_null(name)) return *found;
    throw Error(Code::invalid_argument,
                fmt::format("{}: variable \"{}\" is not a dynamic table", path.string(), name));
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
const std::string& Model::user_state() const noexcept { return impl_->index.user_state; }

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

bool Model::is_table(const std::string& variable) const {
  (void)impl_->variable(variable);
  return impl_->table_or_null(variable) != nullptr;
}

std::vector<std::uint8_t> Model::contains(const std::string& table,
                                          std::span<const std::int64_t> keys) const {
  const TableKeys& rows = impl_->table(table);
  std::vector<std::uint8_t> found;
  found.reserve(keys.size());
  for (const std::int64_t key : keys) found.push_back(rows.find(key) ? 1 : 0);
  return found;
}

std::vector<std::int64_t> Model::keys(const std::string& table) const { return impl_->table(table).all(); }

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

void Model::check_size(const Shape& shape, std::size_t room) {
  const std::int64_t elements = elements_of(shape);
  if (static_cast<std::size_t>(elements) == room) return;
  throw Error(Code::invalid_argument,
              fmt::format("a lookup of shape {} has {} elements, expected an output of that size; found {}",
                          to_string(shape), elements, room));
}

void Model::read_bytes(const std::string& variable, std::int64_t first, std::int64_t rows, void* out) const {
  const io::DatasetReport& array = impl_->variable(variable);
  const std::uint64_t row = io::row_bytes(array.shape, array.dtype);
  // Does not use the mapping, because read-ahead is off for it (MADV_RANDOM).
  io::read_at(impl_->file, impl_->path, array.offset + static_cast<std::uint64_t>(first) * row, out,
              static_cast<std::size_t>(static_cast<std::uint64_t>(rows) * row));
}

void Model::lookup_bytes(const std::string& variable, std::span<const std::int64_t> ids, void* out) const {
  const io::DatasetReport& array = impl_->variable(variable);
  const std::uint64_t row = io::row_bytes(array.shape, array.dtype);
  const TableKeys* const table = impl_->table_or_null(variable);
  for (const std::int64_t id : ids) {
    if (table != nullptr || (id >= 0 && static_cast<std::uint64_t>(id) < array.shape[0])) continue;
    throw Error(Code::out_of_range,
                fmt::format("id {} is out of range: \"{}\" has {} rows", id, variable, array.shape[0]));
  }
  const char* const mapped = impl_->mapping.data();
  auto* to = static_cast<char*>(out);
  for (const std::int64_t id : ids) {
    const std::optional<std::uint64_t> number =
        table == nullptr ? static_cast<std::uint64_t>(id) : table->find(id);
    if (!number) {
      std::memset(to, 0, row);
    } else if (const std::uint64_t at = array.offset + *number * row; mapped == nullptr) {
      io::read_at(impl_->file, impl_->path, at, to, row);
    } else if (row > 0) {
      std::memcpy(to, mapped + at, row);
    }
    to += row;
  }
}

}  // namespace capstan
