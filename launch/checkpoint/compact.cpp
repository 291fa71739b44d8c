// compact.cpp -- `capstan checkpoint compact`: merges an increment with its base into a full checkpoint.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "launch/checkpoint/byte_progress.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/copy.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/new_checkpoint.hpp"
#include "launch/checkpoint/output.hpp"

namespace capstan::launch::checkpoint {
namespace {

/// Step in the name of a checkpoint directory; nullopt for any other name.
std::optional<std::int64_t> step_of_directory(const std::filesystem::path& directory) {
  std::string name = directory.filename().string();
  if (name.ends_with(io::kReplaced)) name.resize(name.size() - io::kReplaced.size());
  return io::step_of_name(name);
}

void print_result(const Request& request, const std::filesystem::path& path, const std::string& base,
                  const std::string& what) {
  if (request.json) {
    print_json(nlohmann::json{{"path", path.string()},
                              {"base", base.empty() ? nlohmann::json() : nlohmann::json(base)}});
  } else {
    print(fmt::format("{}: {}\n", path.string(), what));
  }
}

}  // namespace

int compact(const Request& request) {
  const auto directory = find_checkpoint(request.from);
  const io::CheckpointReader reader(directory);
  if (reader.base() == nullptr) {
    print_result(request, directory, "", "already a full checkpoint");
    return 0;
  }
  const auto canonical = std::filesystem::canonical(directory);
  if (const auto step = step_of_directory(canonical); step != reader.step()) {
    throw Error(Code::invalid_argument,
                fmt::format("{} is of step {}, but compacting in place expects a directory with the name {}; "
                            "write a copy to another directory with `capstan checkpoint reshard`",
                            canonical.string(), reader.step(), io::checkpoint_name(reader.step())));
  }
  NewCheckpoint to(canonical.parent_path(), reader.step(), /*force=*/true);
  {
    ByteProgress progress("compact", 2 * bytes_to_copy(reader));
    reader.verify();
    progress.callback()(bytes_to_copy(reader));
    copy_parts(reader, to, progress.callback());
  }
  const std::string base = reader.manifest().base->checkpoint;
  print_result(request, publish_as(reader, to), base,
               fmt::format("now a full checkpoint, independent of {}", base));
  return 0;
}

}  // namespace capstan::launch::checkpoint
