// served_model.cpp -- see served_model.hpp.
#include "launch/serve/served_model.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <utility>

#include "capstan/error.hpp"
#include "io/export/export.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "launch/checkpoint/find.hpp"

namespace capstan::launch::serve {
namespace {

namespace fs = std::filesystem;

/// Removes the file at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(fs::path path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code error;  // there is nothing to do about a file that cannot be removed
    fs::remove(path_, error);
  }
  const fs::path& path() const noexcept { return path_; }

 private:
  fs::path path_;
};

std::shared_ptr<const Model> copy_of_checkpoint(const fs::path& checkpoint, const fs::path& copy_dir) {
  const io::CheckpointReader reader(checkpoint);
  const TemporaryFile file(copy_dir / fmt::format("capstan-serve-{}-{}.h5", ::getpid(), reader.step()));
  io::OutputFile to(file.path(), /*replace=*/true);
  io::export_model(reader, io::exported_arrays(reader, {}, /*with_slots=*/false), to, {});
  to.publish();
  return std::make_shared<const Model>(file.path());
}

}  // namespace

ServedModel open_model(const std::string& path, const fs::path& copy_dir) {
  std::error_code error;  // opening the path reports the reason
  ServedModel served;
  if (fs::is_directory(path, error)) {
    const fs::path checkpoint = checkpoint::find_checkpoint(path);
    served.source = checkpoint.string();
    served.model = copy_of_checkpoint(checkpoint, copy_dir);
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
  if (fs::is_directory(path_, error)) return checkpoint::find_checkpoint(path_).string();
  struct stat found {};
  if (::stat(path_.c_str(), &found) != 0) return "";
  return fmt::format("{} {}.{:09}", found.st_ino, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

bool CurrentModel::reload() {
  const std::string version = version_on_disk();
  if (version.empty() || version == version_) return false;
  auto next = std::make_shared<const ServedModel>(open_model(path_, copy_dir_));
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
      if (!reload()) continue;
      log(fmt::format("serving step {} of {}", get()->model->step(), get()->source));
      last_error.clear();
    } catch (const std::exception& error) {
      if (std::exchange(last_error, error.what()) != error.what())
        log(fmt::format("keeping step {}: {}", get()->model->step(), error.what()));
    }
  }
}

}  // namespace capstan::launch::serve
