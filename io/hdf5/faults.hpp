// faults.hpp -- everything that is wrong with a checkpoint, not only the first thing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/bytes_done.hpp"

namespace capstan::io {

struct Fault {
  std::string file = {};     // in the folder: "part-00001-of-00002.h5"
  std::string dataset = {};  // "variables/w/value"; empty when it is the file
  std::string text = {};     // the whole sentence
};

/// Reads every byte of the checkpoint in `folder`; none when all is as it was written. Without a readable
/// manifest nothing else can be judged. Throws Error: not_found (no such folder), and for what says nothing
/// about the checkpoint: permission_denied, resource_exhausted, internal.
std::vector<Fault> find_faults(const std::filesystem::path& folder, const BytesDone& done = {});

}  // namespace capstan::io
