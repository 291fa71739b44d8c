// best_values.cpp -- see best_values.hpp.
#include "train/best_values.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "capstan/error.hpp"
#include "cluster/runtime.hpp"

namespace capstan::train {
namespace {

constexpr const char* kAdvice =
    "the values of the last epoch will be the result; set --checkpoint-dir to a directory that all ranks "
    "share";

/// Throws Error: resource_exhausted if it cannot be made.
std::filesystem::path make_temporary_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "capstan-best-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(Code::resource_exhausted, fmt::format("cannot make a directory such as {}: {}", name,
                                                      std::generic_category().message(errno)));
  }
  return name;
}

}  // namespace

BestValues::BestValues(ParameterServerStrategy& strategy, std::filesystem::path checkpoint_dir,
                       std::function<void(const std::string&)> log)
    : strategy_(strategy), is_temporary_(checkpoint_dir.empty()), log_(std::move(log)) {
  if (!is_temporary_) directory_ = checkpoint_dir / "best";
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
      log_(fmt::format("cannot keep the best values in a temporary directory: a ps is on another host; {}",
                       kAdvice));
      return false;
    }
    directory_ = make_temporary_directory();
  }
  checkpoints_.emplace(strategy_, CheckpointOptions{directory_, 1});
  return true;
}

void BestValues::keep(int epoch) {
  try {
    if (open()) checkpoints_->save(epoch);
  } catch (const Error& error) {
    if (error.code() != Code::resource_exhausted && error.code() != Code::permission_denied) throw;
    disabled_ = true;
    log_(fmt::format("cannot keep the best values: {}; {}", error.what(), kAdvice));
  }
}

bool BestValues::restore() { return open() && checkpoints_->restore_latest().has_value(); }

}  // namespace capstan::train
