// saved_checkpoint.cpp -- SavedCheckpoint, implemented by the reader of io/hdf5.
#include "capstan/sidecar_evaluator.hpp"

#include <fmt/format.h>

#include "io/hdf5/checkpoint_reader.hpp"

namespace capstan {

SavedCheckpoint::SavedCheckpoint(const std::filesystem::path& directory)
    : reader_(std::make_unique<io::CheckpointReader>(directory)) {
  reader_->verify();
}
SavedCheckpoint::SavedCheckpoint(SavedCheckpoint&&) noexcept = default;
SavedCheckpoint& SavedCheckpoint::operator=(SavedCheckpoint&&) noexcept = default;
SavedCheckpoint::~SavedCheckpoint() = default;

const std::filesystem::path& SavedCheckpoint::directory() const noexcept { return reader_->directory(); }
std::int64_t SavedCheckpoint::step() const noexcept { return reader_->step(); }
const std::string& SavedCheckpoint::user_state() const noexcept { return reader_->user_state(); }

const std::string& SavedCheckpoint::position(const std::string& name) const {
  const auto& positions = reader_->positions();
  if (const auto found = positions.find(name); found != positions.end()) return found->second;
  throw Error(Code::not_found,
              fmt::format("checkpoint {} has no position of \"{}\"", directory().string(), name));
}

std::vector<std::string> SavedCheckpoint::variables() const {
  std::vector<std::string> names;
  for (const io::VariableInfo& variable : reader_->variables()) names.push_back(variable.name);
  return names;
}

Shape SavedCheckpoint::shape(const std::string& variable) const {
  const auto& shape = reader_->variable(variable).shape;
  return {shape.begin(), shape.end()};
}

Shape SavedCheckpoint::shape_of_rows(const std::string& variable, DType dtype, std::int64_t first,
                                     std::int64_t rows) const {
  const io::VariableInfo& info = reader_->variable(variable);
  if (info.dtype != dtype) {
    throw Error(Code::invalid_argument,
                fmt::format("checkpoint {}, variable \"{}\": found dtype {}, expected {}",
                            directory().string(), variable, to_string(info.dtype), to_string(dtype)));
  }
  Shape shape(info.shape.begin(), info.shape.end());
  if (first < 0 || rows < 0 || first > shape.at(0) || rows > shape.at(0) - first) {
    throw Error(Code::out_of_range,
                fmt::format("variable \"{}\" has {} rows; cannot read {} rows from row {} on", variable,
                            shape.at(0), rows, first));
  }
  shape.at(0) = rows;
  return shape;
}

void SavedCheckpoint::read_bytes(const std::string& variable, std::int64_t first, std::int64_t rows,
                                 void* out) const {
  reader_->read_rows(variable, io::kValue, static_cast<std::uint64_t>(first),
                     static_cast<std::uint64_t>(rows), out);
}

}  // namespace capstan
