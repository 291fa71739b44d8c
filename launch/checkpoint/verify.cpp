// verify.cpp -- `capstan checkpoint verify`: verifies every byte and reports all faults.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "capstan/error.hpp"
#include "capstan/model.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/faults.hpp"
#include "io/hdf5/manifest.hpp"
#include "launch/checkpoint/byte_progress.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/output.hpp"
#include "launch/exit_codes.hpp"

namespace capstan::launch::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Verified {
  fs::path path;
  std::vector<io::Fault> faults;
};

/// The checkpoint `path`, or all checkpoints in the directory `path`.
std::vector<fs::path> checkpoints_in(const fs::path& path) {
  std::error_code error;
  if (is_checkpoint(path) || !fs::is_directory(path, error)) return {path};
  std::vector<fs::path> checkpoints;
  for (const auto& entry : io::list_checkpoints(path)) checkpoints.push_back(entry.path);
  if (checkpoints.empty()) throw Error(Code::not_found, fmt::format("no checkpoint in {}", path.string()));
  return checkpoints;
}

std::uint64_t bytes_to_read(const fs::path& directory) {
  std::uint64_t bytes = 0;
  try {
    for (const io::PartReport& part : io::read_manifest(directory).parts) bytes += part.bytes;
  } catch (const Error&) {
    // find_faults() reports it.
  }
  return bytes;
}

Verified verify_model(const fs::path& file) {
  Verified verified{file, {}};
  try {
    Model(file).verify();
  } catch (const Error& error) {
    if (error.code() != Code::data_loss) throw;
    verified.faults.push_back({file.filename().string(), "", error.what()});
  }
  return verified;
}

std::vector<Verified> verify_all(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error) && Model::is_one(path)) return {verify_model(path)};
  // For any other file, the constructor of the reader throws the precise error.
  if (!fs::is_directory(path, error)) (void)io::CheckpointReader(path);
  const std::vector<fs::path> checkpoints = checkpoints_in(path);
  std::uint64_t bytes = 0;
  for (const fs::path& checkpoint : checkpoints) bytes += bytes_to_read(checkpoint);
  ByteProgress progress("verify", bytes);
  std::vector<Verified> all;
  for (const fs::path& checkpoint : checkpoints)
    all.push_back({checkpoint, io::find_faults(checkpoint, progress.callback())});
  return all;
}

std::string as_text(const std::vector<Verified>& all) {
  std::string text;
  for (const Verified& verified : all) {
    text += fmt::format("{}: {}\n", verified.path.string(),
                        verified.faults.empty() ? "complete" : count_text(verified.faults.size(), "fault"));
    for (const io::Fault& fault : verified.faults) text += fmt::format("  {}\n", fault.text);
  }
  return text;
}

Json as_json(const std::vector<Verified>& all) {
  Json checkpoints = Json::array();
  for (const Verified& verified : all) {
    Json faults = Json::array();
    for (const io::Fault& fault : verified.faults) {
      faults.push_back({{"file", fault.file}, {"dataset", fault.dataset}, {"fault", fault.text}});
    }
    checkpoints.push_back({{"path", verified.path.string()},
                           {"whole", verified.faults.empty()},
                           {"faults", std::move(faults)}});
  }
  return {{"checkpoints", std::move(checkpoints)}};
}

}  // namespace

int verify(const Request& request) {
  const std::vector<Verified> all = verify_all(without_trailing_slash(request.from));
  if (request.json) {
    print_json(as_json(all));
  } else {
    print(as_text(all));
  }
  bool intact = true;
  for (const Verified& verified : all) intact = intact && verified.faults.empty();
  return static_cast<int>(intact ? Exit::ok : Exit::damaged_checkpoint);
}

}  // namespace capstan::launch::checkpoint
