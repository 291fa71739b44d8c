// served_model.cpp -- see served_model.hpp.
#include "launch/serve/served_model.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <utility>

#include "capstan/error.hpp"
#include "io/export/export.hpp"
#include "io/file.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/layout.hpp"
#include "launch/checkpoint/find.hpp"

namespace capstan::launch::serve {
namespace {

namespace fs = std::filesystem;

/// A directory that only this user may enter. Removed at the end with its files. On NFS it stays, empty, if
/// one of them is still open.
class PrivateDirectory {
 public:
  explicit PrivateDirectory(const fs::path& parent) : path_((parent / "capstan-serve-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw io::file_failed("create a directory in", parent, errno);
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  ~PrivateDirectory() {
    std::error_code error;  // there is nothing to do about a directory that cannot be removed
    fs::remove_all(path_, error);
  }
  fs::path path() const { return path_; }

 private:
  std::string path_;
};

/// Identifies a version of a file; "" if there is none.
std::string identity_of(const fs::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return "";
  return fmt::format("{} {} {}.{:09}", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

std::shared_ptr<const Model> copy_of_checkpoint(const fs::path& checkpoint, const fs::path& copy_dir,
                                                const std::stop_token& stop) {
  const io::CheckpointReader reader(checkpoint);
  const PrivateDirectory directory(copy_dir);
  const fs::path file = directory.path() / "model.h5";
  io::OutputFile to(file, /*replace=*/true);
  const auto throw_if_stopped = [&](auto&&...) {
    if (stop.stop_requested()) throw Error(Code::cancelled, "stopped while a checkpoint was copied");
  };
  io::export_model(reader, io::exported_arrays(reader, {}, /*with_slots=*/false), to, throw_if_stopped);
  to.publish();
  return std::make_shared<const Model>(file.string());
}

}  // namespace

ServedModel open_model(const std::string& path, const fs::path& copy_dir, const std::stop_token& stop) {
  std::error_code error;  // opening the path reports the reason
  ServedModel served;
  if (fs::is_directory(path, error)) {
    const fs::path checkpoint = checkpoint::find_checkpoint(path);
    served.source = checkpoint.string();
    served.model = copy_of_checkpoint(checkpoint, copy_dir, stop);
  } else {
    served.source = path;
    served.model = std::make_shared<const Model>(path);
  }
  try {
    served.scorer = train::make_scorer(served.model);
  } catch (const std::exception& why) {
    served.why_no_scorer = why.what();
  }
  return served;
}

CurrentModel::CurrentModel(std::string path, fs::path copy_dir)
    : path_(std::move(path)),
      copy_dir_(std::move(copy_dir)),
      version_(version_on_disk()),
      current_(std::make_shared<const ServedModel>(open_model(path_, copy_dir_))) {}

std::shared_ptr<const ServedModel> CurrentModel::get() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::string CurrentModel::version_on_disk() const {
  std::error_code error;
  if (!fs::is_directory(path_, error)) return identity_of(path_);
  const fs::path checkpoint = checkpoint::find_checkpoint(path_);
  return fmt::format("{} {}", checkpoint.string(), identity_of(checkpoint / io::kManifestFile));
}

bool CurrentModel::reload(const std::stop_token& stop) {
  const std::string version = version_on_disk();
  if (version.empty() || version == version_) return false;
  auto next = std::make_shared<const ServedModel>(open_model(path_, copy_dir_, stop));
  version_ = version;
  const std::lock_guard lock(mutex_);
  current_ = std::move(next);
  return true;
}

void CurrentModel::follow(std::chrono::milliseconds interval, const std::stop_token& stop,
                          const std::function<void(const std::string& line)>& log) {
  std::mutex mutex;
  std::condition_variable_any never_signaled;
  std::string last_error;
  while (!stop.stop_requested()) {
    std::unique_lock lock(mutex);
    never_signaled.wait_for(lock, stop, interval, [] { return false; });
    if (stop.stop_requested()) return;
    try {
      if (!reload(stop)) continue;
      log(fmt::format("serving step {} of {}", get()->model->step(), get()->source));
      last_error.clear();
    } catch (const std::exception& error) {
      if (stop.stop_requested()) return;
      if (std::exchange(last_error, error.what()) != error.what())
        log(fmt::format("keeping step {}: {}", get()->model->step(), error.what()));
    }
  }
}

}  // namespace capstan::launch::serve
