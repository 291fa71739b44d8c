// file_descriptor.hpp -- owns a file descriptor and closes it once.
#pragma once

#include <unistd.h>

#include "base/handle.hpp"

namespace capstan {

struct FileDescriptorTraits {
  using type = int;
  static type none() noexcept { return -1; }
  static void free(type h) noexcept { (void)::close(h); }  // on Linux it is closed, whatever close returns
};
using FileDescriptor = Handle<FileDescriptorTraits>;

}  // namespace capstan
