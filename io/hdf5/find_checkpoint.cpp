// find_checkpoint.cpp -- the newest checkpoint that is whole, and what was wrong with newer ones.
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
  const auto pass_over = [&](const CheckpointEntry& entry, const Error& error) {
    damaged.push_back(fmt::format("{}: {}", entry.path.filename().string(), error.what()));
  };
  // Not before it is known that there is another one to use.
  const auto say_damaged = [&] {
    for (const std::string& fault : damaged) log::warn("damaged checkpoint passed over: {}", fault);
  };
  for (const CheckpointEntry& entry : entries) {
    std::optional<CheckpointReader> reader;
    try {
      reader.emplace(entry.path);
    } catch (const Error& error) {
      if (error.code() == Code::resource_exhausted) throw;  // the fault is ours, not the checkpoint's
      pass_over(entry, error);
      continue;
    }
    try {
      if (verify) {
        verify(*reader);
        say_damaged();
      } else {
        reader->verify();
      }
      return {*std::move(reader), std::move(damaged)};
    } catch (const Error& error) {
      const bool others_fault =
          verify ? error.code() != Code::data_loss : error.code() == Code::resource_exhausted;
      if (others_fault) say_damaged();
      if (others_fault) throw;
      pass_over(entry, error);
    }
  }
  if (damaged.empty()) {
    throw Error(Code::not_found,
                fmt::format("no checkpoint in {}; start without resuming, or give the folder of an "
                            "earlier run",
                            directory.string()));
  }
  std::string text = fmt::format("every checkpoint in {} is damaged:", directory.string());
  for (const std::string& fault : damaged) text += "\n  " + fault;
  throw Error(Code::data_loss, text);
}

FoundCheckpoint open_to_resume(const std::filesystem::path& path) {
  // "run/checkpoint-00000012/" has an empty last component.
  const auto clean = path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
  std::error_code error;  // the reader says what is wrong with a path that cannot be looked at
  const bool is_one = step_of_name(clean.filename().string()).has_value() ||
                      std::filesystem::exists(clean / kManifestFile, error);
  if (!is_one && std::filesystem::is_directory(clean, error)) return open_latest(clean);
  CheckpointReader reader(clean);
  reader.verify();
  return {std::move(reader), {}};
}

}  // namespace capstan::io
