// compact.cpp -- `capstan checkpoint compact`: an increment and its base as one whole checkpoint.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/copy.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/new_checkpoint.hpp"
#include "launch/checkpoint/output.hpp"
#include "launch/checkpoint/work.hpp"

namespace capstan::launch::checkpoint {
namespace {

/// Of the folder's name; nothing when that is not a checkpoint's.
std::optional<std::int64_t> step_in(const std::filesystem::path& folder) {
  std::string name = folder.filename().string();
  if (name.ends_with(io::kReplaced)) name.resize(name.size() - io::kReplaced.size());
  return io::step_of_name(name);
}

void say(const Request& request, const std::filesystem::path& path, const std::string& base,
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
  const auto folder = find_checkpoint(request.from);
  const io::CheckpointReader reader(folder);
  if (reader.base() == nullptr) {
    say(request, folder, "", "is whole already");
    return 0;
  }
  const auto whole_name = std::filesystem::canonical(folder);
  if (const auto step = step_in(whole_name); step != reader.step()) {
    throw Error(Code::invalid_argument,
                fmt::format("{} is of step {}: what takes its place would be {}, which is another one; "
                            "`capstan checkpoint reshard` writes to a folder of its own",
                            whole_name.string(), reader.step(), io::checkpoint_name(reader.step())));
  }
  NewCheckpoint to(whole_name.parent_path(), reader.step(), /*force=*/true);
  {
    Work work("compact", 2 * bytes_to_copy(reader));
    reader.verify();
    work.done()(bytes_to_copy(reader));
    copy_as_it_is(reader, to, work.done());
  }
  const std::string base = reader.manifest().base->checkpoint;
  say(request, publish_as(reader, to), base, fmt::format("whole now, and no longer in need of {}", base));
  return 0;
}

}  // namespace capstan::launch::checkpoint
