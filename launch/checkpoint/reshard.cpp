// reshard.cpp -- `capstan checkpoint reshard`: rewrites the arrays with another number of parts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/manifest.hpp"
#include "launch/checkpoint/byte_progress.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/copy.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/new_checkpoint.hpp"
#include "launch/checkpoint/output.hpp"

namespace capstan::launch::checkpoint {
namespace {

constexpr std::int64_t kMaxParts = 99'999;  // file names have five digits

}  // namespace

int reshard(const Request& request) {
  if (request.parts < 1 || request.parts > kMaxParts) {
    throw Error(Code::invalid_argument,
                fmt::format("--parts {}: expected 1 to {}", request.parts, kMaxParts));
  }
  const io::CheckpointReader reader(find_checkpoint(request.from));
  NewCheckpoint to(without_trailing_slash(request.to), reader.step(), request.force);
  {
    ByteProgress progress("reshard", bytes_to_copy(reader));
    copy(reader, to, static_cast<int>(request.parts), progress.callback());
  }
  const auto directory = publish_as(reader, to);
  const std::size_t before = reader.manifest().parts.size();
  if (request.json) {
    print_json(nlohmann::json{{"from", reader.directory().string()},
                              {"path", directory.string()},
                              {"step", reader.step()},
                              {"parts_before", before},
                              {"parts", request.parts}});
  } else {
    print(fmt::format("{}: {}, previously {}\n", directory.string(),
                      count_text(static_cast<std::uint64_t>(request.parts), "part"), before));
  }
  return 0;
}

}  // namespace capstan::launch::checkpoint
