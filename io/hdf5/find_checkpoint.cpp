// find_checkpoint.cpp -- the newest undamaged checkpoint, and the faults of newer ones.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {

FoundCheckpoint open_latest(const std::filesystem::path& directory, const Verify& verify) {
  auto entries = list_checkpoints(directory);
  std::reverse(entries.begin(), entries.end());
  std::vector<std::string> damaged;
  const auto skip = [&](const CheckpointEntry& entry, const Error& error) {
    damaged.push_back(fmt::format("{}: {}", entry.path.filename().string(), error.what()));
  };
  // Deferred: if all checkpoints are damaged, the Error lists the faults instead.
  const auto log_skipped = [&] {
    for (const std::string& fault : damaged) log::warn("skipped damaged checkpoint {}", fault);
  };
  for (const CheckpointEntry& entry : entries) {
    std::optional<CheckpointReader> reader;
    try {
      reader.emplace(entry.path);
    } catch (const Error& error) {
      if (error.code() == Code::resource_exhausted) throw;  // not a fault of the checkpoint
      skip(entry, error);
      continue;
    }
    try {
      if (verify) {
        verify(*reader);
        log_skipped();
      } else {
        reader->verify();
      }
      return {*std::move(reader), std::move(damaged)};
    } catch (const Error& error) {
      const bool is_undamaged =
          verify ? error.code() != Code::data_loss : error.code() == Code::resource_exhausted;
      if (is_undamaged) log_skipped();
      if (is_undamaged) throw;
      skip(entry, error);
    }
  }
  if (damaged.empty()) {
    throw Error(
        Code::not_found,
        fmt::format("no checkpoint in {}; start without resuming, or pass the checkpoint directory of "
                    "an earlier run",
                    directory.string()));
  }
  std::string text = fmt::format("every checkpoint in {} is damaged:", directory.string());
  for (const std::string& fault : damaged) text += "\n  " + fault;
  throw Error(Code::data_loss, text);
}

FoundCheckpoint open_to_resume(const std::filesystem::path& path) {
  // "run/checkpoint-00000012/" has an empty last component.
  const auto clean = path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
  std::error_code error;  // ignored: CheckpointReader reports an inaccessible path
  const bool is_one = step_of_name(clean.filename().string()).has_value() ||
                      std::filesystem::exists(clean / kManifestFile, error);
  if (!is_one && std::filesystem::is_directory(clean, error)) return open_latest(clean);
  CheckpointReader reader(clean);
  reader.verify();
  return {std::move(reader), {}};
}

}  // namespace capstan::io
