// faults.hpp -- finds all faults of a checkpoint, not only the first.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/progress_callback.hpp"

namespace capstan::io {

struct Fault {
  std::string file = {};     // in the checkpoint: "part-00001-of-00002.h5"
  std::string dataset = {};  // "variables/w/value"; empty if the fault concerns the file
  std::string text = {};     // message, with the path
};

/// Reads every byte of the checkpoint in `directory` and of its base; returns no faults if all checksums
/// match. Without a readable manifest, checks nothing else. Throws Error: not_found (no such directory), and
/// errors that are not faults of the checkpoint: permission_denied, resource_exhausted, internal.
std::vector<Fault> find_faults(const std::filesystem::path& directory, const ProgressCallback& progress = {});

}  // namespace capstan::io
