// reshard.cpp -- `capstan checkpoint reshard`: the same arrays in another number of parts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "capstan/error.hpp"
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

constexpr std::int64_t kMostParts = 99'999;  // five digits in a file's name

}  // namespace

int reshard(const Request& request) {
  if (request.parts < 1 || request.parts > kMostParts) {
    throw Error(Code::invalid_argument,
                fmt::format("--parts {}: expected 1 to {}", request.parts, kMostParts));
  }
  const io::CheckpointReader reader(find_checkpoint(request.from));
  NewCheckpoint to(without_slash(request.to), reader.step(), request.force);
  {
    Work work("reshard", bytes_to_copy(reader));
    copy(reader, to, static_cast<int>(request.parts), work.done());
  }
  const auto folder = publish_as(reader, to);
  const std::size_t before = reader.manifest().parts.size();
  if (request.json) {
    print_json(nlohmann::json{{"from", reader.folder().string()},
                              {"path", folder.string()},
                              {"step", reader.step()},
                              {"parts_before", before},
                              {"parts", request.parts}});
  } else {
    print(fmt::format("{}: {}, before {}\n", folder.string(),
                      count_text(static_cast<std::uint64_t>(request.parts), "part"), before));
  }
  return 0;
}

}  // namespace capstan::launch::checkpoint
