// reshard.cpp -- `capstan checkpoint reshard`: the same arrays in another number of parts.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "capstan/error.hpp"
#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/layout.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/new_checkpoint.hpp"
#include "launch/checkpoint/output.hpp"
#include "launch/checkpoint/work.hpp"

namespace capstan::launch::checkpoint {
namespace {

constexpr std::int64_t kMostParts = 99'999;  // five digits in a file's name

/// Whole arrays that are read from `reader` as they are written.
std::vector<io::PartArray> arrays_from(const io::CheckpointReader& reader,
                                       const std::vector<io::ArrayInfo>& listed, const io::BytesDone& done) {
  std::vector<io::PartArray> arrays;
  for (const io::ArrayInfo& info : listed) {
    io::PartArray array{
        .variable = info.variable, .which = info.which, .dtype = info.dtype, .shape = info.shape};
    const auto stream = std::make_shared<io::ArrayStream>(reader.folder(), reader.manifest(), info);
    const std::uint64_t row = io::row_bytes(info.shape, info.dtype);
    // The parts and their rows are written in order, so a stream is enough.
    array.read = [stream, row, done](std::uint64_t, std::uint64_t count, std::byte* out) {
      stream->read({reinterpret_cast<char*>(out), static_cast<std::size_t>(count * row)});
      done(count * row);
    };
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace

int reshard(const Request& request) {
  if (request.parts < 1 || request.parts > kMostParts) {
    throw Error(Code::invalid_argument,
                fmt::format("--parts {}: expected 1 to {}", request.parts, kMostParts));
  }
  const io::CheckpointReader reader(find_checkpoint(request.from));
  NewCheckpoint to(without_slash(request.to), reader.step(), request.force);
  {
    const auto listed = io::arrays_of(reader.variables(), /*with_slots=*/true);
    Work work("reshard", io::bytes_of(listed));
    // Who restores with another number of ps gets the same steps.
    to.write(arrays_from(reader, listed, work.done()), static_cast<int>(request.parts),
             [&](io::PartArray& rows) {
               const io::VariableInfo& variable = reader.variable(rows.variable);
               rows.optimizer = variable.optimizer;
               rows.steps = rows.rows == 0 ? variable.steps : variable.steps_of(rows.first_row, rows.rows);
             });
  }
  const auto folder = to.publish({.user_state = reader.user_state(),
                                  .settings = reader.settings(),
                                  .positions = reader.positions(),
                                  .counters = reader.counters()});
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
