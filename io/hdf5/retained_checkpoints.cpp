// retained_checkpoints.cpp -- {"kept": ["checkpoint-00000012"], "last": 1764000000.0}
#include "io/hdf5/retained_checkpoints.hpp"

#include <sys/stat.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "base/json.hpp"
#include "base/log.hpp"
#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

constexpr double kSecondsPerHour = 3600;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RetainedCheckpoints::RetainedCheckpoints(std::filesystem::path directory) : directory_(std::move(directory)) {
  const auto file = directory_ / kRetainedFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return;
  try {
    const auto json = parse_json(read_whole_file(file), "its text", Code::data_loss);
    last_ = json.at("last").get<double>();
    names_ = json.at("kept").get<std::set<std::string>>();
  } catch (const std::exception& fault) {
    log::warn("ignoring {}, which is malformed: {}", file.string(), fault.what());
    last_ = 0;
    names_.clear();
  }
}

void RetainedCheckpoints::start() {
  if (last_ != 0) return;
  last_ = now();
  write();
}

bool RetainedCheckpoints::retain(const std::string& name, double hours) {
  const double saved = saved_at(directory_ / name);
  if (hours <= 0 || last_ == 0 || saved - hours * kSecondsPerHour < last_) return false;
  last_ = saved;
  names_.insert(name);
  std::error_code error;
  std::erase_if(
      names_, [&](const std::string& other) { return !std::filesystem::exists(directory_ / other, error); });
  write();
  return true;
}

double RetainedCheckpoints::saved_at(const std::filesystem::path& checkpoint) {
  struct stat status {};
  const auto file = checkpoint / kManifestFile;
  if (::stat(file.c_str(), &status) != 0) throw file_failed("stat", file, errno);
  return static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
}

void RetainedCheckpoints::write() const {
  const nlohmann::json json{{"kept", names_}, {"last", last_}};
  const auto file = directory_ / kRetainedFile;
  auto unfinished = file;
  unfinished += kUnfinished;
  write_synced_file(unfinished, json.dump(1) + "\n");
  rename_path(unfinished, file);
  sync_path(directory_);
}

}  // namespace capstan::io
