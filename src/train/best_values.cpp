// best_values.cpp -- see best_values.hpp.
#include "train/best_values.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <utility>

#include "capstan/error.hpp"
#include "cluster/runtime.hpp"

namespace capstan::train {
namespace {

constexpr const char* kAdvice =
    "the values of the last epoch will be the result, and kge --auto runs no further trial; set "
    "--checkpoint-dir to a directory that all ranks "
    "share";

constexpr std::string_view kPrefix = "capstan-best-";

/// Deletes the temporary directories of this user's processes that were killed.
void remove_abandoned_directories() {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::temp_directory_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const int pid = std::atoi(name.c_str() + kPrefix.size());
    if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) std::filesystem::remove_all(entry, ignored);
  }
}

/// Makes a directory whose name has this process's pid. Throws Error: resource_exhausted if it cannot be
/// made.
std::filesystem::path make_temporary_directory() {
  remove_abandoned_directories();
  std::string name =
      (std::filesystem::temp_directory_path() / fmt::format("{}{}-XXXXXX", kPrefix, ::getpid())).string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(Code::resource_exhausted, fmt::format("cannot make a directory such as {}: {}", name,
                                                      std::generic_category().message(errno)));
  }
  return name;
}

}  // namespace

BestValues::BestValues(ParameterServerStrategy& strategy, const RunOptions& options,
                       std::function<void(const std::string&)> log, std::string name)
    : strategy_(strategy),
      name_(std::move(name)),
      is_temporary_(options.checkpoint_dir.empty()),
      settings_(options.settings_json),
      log_(std::move(log)) {
  if (!is_temporary_) directory_ = std::filesystem::path(options.checkpoint_dir) / name_;
}

BestValues::~BestValues() {
  checkpoints_.reset();
  std::error_code ignored;
  if (is_temporary_ && !directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

bool BestValues::open() {
  if (checkpoints_ || disabled_) return !disabled_;
  if (is_temporary_) {
    const std::vector<PsLoad> all = strategy_.loads();
    const bool here =
        std::all_of(all.begin(), all.end(), [](const PsLoad& ps) { return ps.host == cluster::host_name(); });
    if (!here) {
      disabled_ = true;
      log_(fmt::format("cannot keep the {} values in a temporary directory: a ps is on another host; {}",
                       name_, kAdvice));
      return false;
    }
    directory_ = make_temporary_directory();
  }
  checkpoints_.emplace(strategy_, CheckpointOptions{directory_, 1, settings_});
  return true;
}

void BestValues::keep(int epoch, const std::string& state) {
  try {
    if (open()) checkpoints_->save(epoch, state);
  } catch (const Error& error) {
    const auto is_one_of = [&](std::initializer_list<Code> codes) {
      return std::find(codes.begin(), codes.end(), error.code()) != codes.end();
    };
    // The last two: a ps has moved to another host, which has no such temporary directory.
    if (!is_one_of({Code::resource_exhausted, Code::permission_denied, Code::not_found, Code::data_loss}))
      throw;
    disabled_ = true;
    log_(fmt::format("cannot keep the {} values: {}; {}", name_, error.what(), kAdvice));
  }
}

bool BestValues::restore(int epoch) {
  if (!open()) return false;
  const auto kept = checkpoints_->latest();
  if (kept == epoch) return checkpoints_->restore_latest().has_value();
  log_(fmt::format("cannot restore the {} values, of epoch {}: {} has {}", name_, epoch, directory_.string(),
                   kept ? fmt::format("those of epoch {}", *kept) : "none"));
  return false;
}

void BestValues::discard() {
  checkpoints_.reset();
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

}  // namespace capstan::train
