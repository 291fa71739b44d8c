// compact.cpp -- `capstan checkpoint compact`: an increment and its base as one whole checkpoint.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/manifest.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/copy.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/new_checkpoint.hpp"
#include "launch/checkpoint/output.hpp"
#include "launch/checkpoint/work.hpp"

namespace capstan::launch::checkpoint {
namespace {

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
  const auto absolute = std::filesystem::absolute(folder);
  NewCheckpoint to(absolute.parent_path(), reader.step(), /*force=*/true);
  {
    Work work("compact", bytes_to_copy(reader));
    copy(reader, to, static_cast<int>(reader.parts().size()), work.done());
  }
  const std::string base = reader.manifest().base->checkpoint;
  say(request, publish_as(reader, to), base, fmt::format("whole now, and no longer in need of {}", base));
  return 0;
}

}  // namespace capstan::launch::checkpoint
