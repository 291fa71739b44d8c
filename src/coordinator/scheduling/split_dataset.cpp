// split_dataset.cpp -- cuts numbers and files into splits; the public interface of SplitKeeper.
#include "capstan/detail/split_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "capstan/coordinator.hpp"
#include "coordinator/scheduling/split_keeper.hpp"
#include "io/checksum.hpp"

namespace capstan {
namespace {

void cut(std::int64_t size, std::int64_t piece, const std::string& file, std::vector<DataSplit>& cuts) {
  for (std::int64_t begin = 0; begin < size;) {
    const std::int64_t end = size - begin <= piece ? size : begin + piece;
    cuts.push_back({.begin = begin, .end = end, .file = file});
    begin = end;
  }
}

std::int64_t size_of_file(const std::filesystem::path& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  if (!error) return static_cast<std::int64_t>(bytes);
  throw Error(error == std::errc::no_such_file_or_directory ? Code::not_found : Code::permission_denied,
              fmt::format("create_split_dataset: {}: {}", file.string(), error.message()));
}

/// Returns the name in `options`; if it is empty, the first unused one of "splits", "splits-2" and so on.
std::string name_of(const SplitOptions& options, strategy::Strategy& strategy) {
  if (!options.name.empty()) return options.name;
  const auto taken = strategy.states().all();
  std::string name = "splits";
  for (int i = 2; taken.contains(name); ++i) name = "splits-" + std::to_string(i);
  return name;
}

SplitDataset made(const std::shared_ptr<coordinator::Coordinator>& coordinator, std::vector<DataSplit> cuts,
                  std::string data, SplitOptions options) {
  options.name = name_of(options, coordinator->strategy());
  auto keeper =
      std::make_shared<coordinator::SplitKeeper>(coordinator, std::move(cuts), std::move(data), options);
  coordinator->strategy().states().add(options.name, keeper);
  return SplitDataset(std::move(keeper));
}

}  // namespace

SplitDataset ClusterCoordinator::create_split_dataset(std::int64_t examples, const SplitOptions& options) {
  data::require_at_least(examples, 0, "create_split_dataset: the number of examples");
  data::require_at_least(options.examples_per_split, 1, "create_split_dataset: examples_per_split");
  std::vector<DataSplit> cuts;
  cut(examples, options.examples_per_split, {}, cuts);
  auto data = fmt::format("{} examples, {} a split", examples, options.examples_per_split);
  return made(implementation_, std::move(cuts), std::move(data), options);
}

SplitDataset ClusterCoordinator::create_split_dataset(const data::Paths& files, const SplitOptions& options) {
  data::require_at_least(options.bytes_per_split, 0, "create_split_dataset: bytes_per_split");
  std::vector<DataSplit> cuts;
  std::string names;
  for (const auto& file : files) {
    const std::int64_t bytes = size_of_file(file);
    cut(bytes, options.bytes_per_split > 0 ? options.bytes_per_split : bytes, file.string(), cuts);
    // Without the directory, since data may be moved between two runs.
    names += fmt::format("{} {}\n", file.filename().string(), bytes);
  }
  auto data = fmt::format("{} files {}, {} bytes a split", files.size(), io::checksum_of(names),
                          options.bytes_per_split);
  return made(implementation_, std::move(cuts), std::move(data), options);
}

bool SplitDataset::done() const { return keeper_->done(); }
std::int64_t SplitDataset::epoch() const { return keeper_->epoch(); }
std::int64_t SplitDataset::splits_per_epoch() const { return keeper_->count(); }
std::int64_t SplitDataset::splits_done(std::int64_t epoch) const { return keeper_->splits_done(epoch); }
std::vector<DataSplit> SplitDataset::splits(std::int64_t epoch) const { return keeper_->in_order(epoch); }
std::string SplitDataset::position() const { return keeper_->position(); }
void SplitDataset::restore(const std::string& position) { keeper_->restore(position); }
std::vector<DataSplit> SplitDataset::next(std::int64_t count) const { return keeper_->next(count); }
std::shared_ptr<const coordinator::Result> SplitDataset::add(const DataSplit& split, std::uint32_t function,
                                                             detail::PackedArguments arguments) {
  return keeper_->add(split, function, std::move(arguments));
}

}  // namespace capstan
