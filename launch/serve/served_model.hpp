// served_model.hpp -- the model that a server answers from, and its replacement by a newer one.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "capstan/model.hpp"
#include "train/scoring/scorer.hpp"

namespace capstan::launch::serve {

/// An opened model. Immutable; any thread.
struct ServedModel {
  std::string source = {};  // path of the model file or the checkpoint
  std::shared_ptr<const Model> model = {};
  std::shared_ptr<const train::Scorer> scorer = {};  // null if the model has no scores
  std::string why_no_scorer = {};
};

/// Opens a model file, a checkpoint, or the newest checkpoint of a directory. A checkpoint is first copied to
/// a model file in a private directory in `copy_dir`, which is removed once it is open. Throws Error:
/// not_found, data_loss, resource_exhausted if the disk is full, cancelled if a stop is requested meanwhile.
ServedModel open_model(const std::string& path, const std::filesystem::path& copy_dir,
                       const std::stop_token& stop = {});

/// The current model. Any thread.
class CurrentModel {
 public:
  /// Opens the model. Throws as open_model() does.
  CurrentModel(std::string path, std::filesystem::path copy_dir);

  /// A request uses one model until its end, also if a newer one is opened meanwhile.
  std::shared_ptr<const ServedModel> get() const;
  /// Opens the newest checkpoint, or a replaced model file. Returns false if there is none. Throws as
  /// open_model() does, and keeps the model then. One thread.
  bool reload(const std::stop_token& stop = {});
  /// Calls reload() at this interval until a stop is requested, which also ends a copy. Calls `log` for each
  /// new model and for each new error.
  void follow(std::chrono::milliseconds interval, const std::stop_token& stop,
              const std::function<void(const std::string& line)>& log);

 private:
  /// Identifies the newest model on disk: a checkpoint by its path and manifest, files by inode,
  /// size and time.
  std::string version_on_disk() const;

  std::string path_;
  std::filesystem::path copy_dir_;
  std::string version_;
  mutable std::mutex mutex_;  // of current_
  std::shared_ptr<const ServedModel> current_;
};

}  // namespace capstan::launch::serve
