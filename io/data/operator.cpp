// operator.cpp -- the type-independent part of dataset operators, and list_files.
#include "capstan/data/operator.hpp"

#include "capstan/dataset.hpp"

namespace capstan {
namespace data {

std::string_view to_string(Kind kind) noexcept {
  constexpr std::string_view kNames[] = {
      "from_vector", "range",    "from_generator", "from_files",  "file_names", "map",     "filter",
      "shuffle",     "batch",    "repeat",         "take",        "skip",       "shard",   "interleave",
      "concatenate", "zip",      "prefetch",       "cache",       "transform",  "rebatch", "legacy_rebatch",
      "group",       "function", "file",           "side_by_side"};
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

Operator::~Operator() = default;

void Operator::describe(Writer& out) const {
  if (recipe_.function == nullptr) {
    throw Error(Code::invalid_argument,
                "cannot send the dataset to workers: its operator '" + std::string(to_string(kind())) +
                    "' has a function with captures, has elements that cannot be serialized, or was created "
                    "by auto_shard or another library, expected data and function objects without captures; "
                    "create the dataset on each worker with create_per_worker_dataset<&f>(arguments...)");
  }
  capstan::write(out, *recipe_.function);
  for (const auto& input : inputs()) input->describe(out);
  recipe_.write_arguments(out);
}

bool Operator::endless() const {
  for (const OperatorPointer& input : inputs()) {
    if (input->endless()) return true;
  }
  return false;
}

BatchInfo batches_of(const std::vector<OperatorPointer>& inputs) {
  BatchInfo all = inputs.at(0)->batches();
  for (const OperatorPointer& input : inputs) {
    const BatchInfo one = input->batches();
    if (one.size != all.size) return {};
    all.always_full = all.always_full && one.always_full;
  }
  return all;
}

void require_at_least(std::int64_t value, std::int64_t least, const char* what) {
  if (value < least) {
    throw Error(Code::invalid_argument, std::string(what) + " is " + std::to_string(value) + "; it must be " +
                                            std::to_string(least) + " or more");
  }
}

}  // namespace data

Dataset<std::filesystem::path> list_files(data::Paths files) {
  auto node = std::make_shared<data::VectorNode<std::filesystem::path>>(files, data::Kind::file_names);
  return Dataset<std::filesystem::path>(detail::with_recipe<&list_files>(std::move(node), std::move(files)));
}

}  // namespace capstan
