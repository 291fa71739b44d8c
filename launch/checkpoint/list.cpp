// list.cpp -- `capstan checkpoint list`: lists the checkpoints of a directory.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <system_error>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/faults.hpp"
#include "io/hdf5/layout.hpp"
#include "io/hdf5/manifest.hpp"
#include "io/hdf5/retained_checkpoints.hpp"
#include "launch/checkpoint/byte_progress.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/output.hpp"
#include "launch/units.hpp"

namespace capstan::launch::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Listed {
  io::CheckpointEntry entry = {};
  std::time_t written = 0;  // modification time of its newest file
  std::uint64_t bytes = 0;  // size of all its files
  std::uint64_t parts = 0;
  std::uint64_t variables = 0;
  std::string base = {};   // base of an increment
  bool retained = false;   // exempt from max_to_keep
  std::string fault = {};  // "" if no fault was found
};

struct Leftover {
  std::string name;
  std::string what;
};

void stat_files(Listed& listed) {
  std::error_code error;  // ignored: inspect() reports unreadable files
  for (fs::directory_iterator it(listed.entry.path, error), end; !error && it != end; it.increment(error)) {
    struct stat status {};
    if (::stat(it->path().c_str(), &status) != 0) continue;
    listed.bytes += static_cast<std::uint64_t>(status.st_size);
    listed.written = std::max(listed.written, status.st_mtime);
  }
}

Listed inspect(io::CheckpointEntry entry, const io::ProgressCallback& progress, bool verify) {
  Listed listed{.entry = std::move(entry)};
  stat_files(listed);
  try {
    const io::CheckpointReader reader(listed.entry.path);
    listed.parts = reader.manifest().parts.size();
    listed.variables = reader.variables().size();
    if (reader.manifest().base) listed.base = reader.manifest().base->checkpoint;
    if (verify) {
      const auto faults = io::find_faults(listed.entry.path, progress);
      if (!faults.empty()) listed.fault = faults.front().text;
    }
  } catch (const Error& error) {
    if (error.code() == Code::resource_exhausted) throw;  // a local shortage, not a fault of the checkpoint
    listed.fault = error.what();
  }
  return listed;
}

/// Describes a checkpoint name with the suffix of an unfinished operation; "" for any other name.
std::string leftover_kind(const std::string& name) {
  const auto is = [&](std::string_view suffix) {
    return name.ends_with(suffix) &&
           io::step_of_name(name.substr(0, name.size() - suffix.size())).has_value();
  };
  if (is(io::kUnfinished)) return "being written, or left by an interrupted save; the next save removes it";
  if (is(io::kDeleted)) return "being deleted, or left by an interrupted deletion; the next save removes it";
  if (is(io::kReplaced)) return "replaced by a newer checkpoint of the same step; the next save removes it";
  return "";
}

std::vector<Leftover> find_leftovers(const fs::path& directory,
                                     const std::vector<io::CheckpointEntry>& entries) {
  std::vector<Leftover> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool listed = std::any_of(entries.begin(), entries.end(),
                                    [&](const auto& entry) { return entry.path.filename() == name; });
    if (std::string kind = leftover_kind(name); !listed && !kind.empty())
      found.push_back({name, std::move(kind)});
  }
  std::sort(found.begin(), found.end(), [](const Leftover& a, const Leftover& b) { return a.name < b.name; });
  return found;
}

std::string state_text(const Listed& listed, bool verified, bool latest) {
  std::string text = !listed.fault.empty() ? "DAMAGED" : verified ? "complete, verified" : "complete";
  if (!listed.base.empty()) text += fmt::format(", changes since {}", listed.base);
  if (listed.retained) text += ", kept";
  if (latest) text += ", latest";
  return text;
}

std::string as_text(const fs::path& directory, const std::vector<Listed>& all,
                    const std::vector<Leftover>& leftovers, bool verified) {
  if (all.empty() && leftovers.empty()) return fmt::format("no checkpoints in {}\n", directory.string());
  std::vector<Row> rows;
  for (const Listed& listed : all) {
    const bool latest = &listed == &all.back();
    rows.push_back({fmt::format("{}", listed.entry.step),
                    fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(listed.written)),
                    size_text(static_cast<double>(listed.bytes)), fmt::format("{}", listed.parts),
                    fmt::format("{}", listed.variables), state_text(listed, verified, latest)});
  }
  std::string text;
  if (!rows.empty()) text += table({">step", "written", ">bytes", ">parts", ">variables", "state"}, rows);
  for (const Listed& listed : all) {
    if (!listed.fault.empty())
      text += fmt::format("{}: {}\n", listed.entry.path.filename().string(), listed.fault);
  }
  for (const Leftover& leftover : leftovers) text += fmt::format("{}: {}\n", leftover.name, leftover.what);
  return text;
}

Json as_json(const fs::path& directory, const std::vector<Listed>& all,
             const std::vector<Leftover>& leftovers, bool verified) {
  Json checkpoints = Json::array();
  for (const Listed& listed : all) {
    Json json{{"step", listed.entry.step},
              {"path", listed.entry.path.string()},
              {"written", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(listed.written))},
              {"bytes", listed.bytes},
              {"parts", listed.parts},
              {"variables", listed.variables},
              {"base", listed.base.empty() ? Json() : Json(listed.base)},
              {"whole", listed.fault.empty()},
              {"verified", verified && listed.fault.empty()},
              {"kept", listed.retained},
              {"latest", &listed == &all.back()}};
    if (!listed.fault.empty()) json["fault"] = listed.fault;
    checkpoints.push_back(std::move(json));
  }
  Json left = Json::array();
  for (const Leftover& leftover : leftovers)
    left.push_back({{"name", leftover.name}, {"what", leftover.what}});
  return {{"directory", directory.string()},
          {"checkpoints", std::move(checkpoints)},
          {"leftovers", std::move(left)}};
}

void check_is_directory(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    throw Error(Code::not_found, fmt::format("no directory {}", directory.string()));
  }
  if (is_checkpoint(directory)) {
    throw Error(Code::invalid_argument, fmt::format("{} is one checkpoint, expected a directory of "
                                                    "checkpoints; use `capstan checkpoint show` for one",
                                                    directory.string()));
  }
}

}  // namespace

int list(const Request& request) {
  const fs::path directory = without_trailing_slash(request.from);
  check_is_directory(directory);
  const auto entries = io::list_checkpoints(directory);
  std::uint64_t bytes = 0;
  for (const auto& entry : entries) {
    Listed files{.entry = entry};
    if (request.verify) stat_files(files);
    bytes += files.bytes;
  }
  std::vector<Listed> all;
  {
    ByteProgress progress("verify", bytes);
    const io::RetainedCheckpoints retained(directory);
    for (const auto& entry : entries) {
      all.push_back(inspect(entry, progress.callback(), request.verify));
      all.back().retained = retained.contains(entry.path.filename().string());
    }
  }
  const auto leftovers = find_leftovers(directory, entries);
  if (request.json) {
    print_json(as_json(directory, all, leftovers, request.verify));
  } else {
    print(as_text(directory, all, leftovers, request.verify));
  }
  return 0;
}

}  // namespace capstan::launch::checkpoint
