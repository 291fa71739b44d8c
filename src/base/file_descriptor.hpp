// file_descriptor.hpp -- RAII owner of a file descriptor.
#pragma once

#include "base/handle.hpp"

namespace capstan {

struct FileDescriptorTraits {
  using type = int;
  static type none() noexcept { return -1; }
  static void free(type fd) noexcept;
};
using FileDescriptor = Handle<FileDescriptorTraits>;

}  // namespace capstan
