// file_descriptor.cpp -- close(2), whose failure is logged; on Linux the descriptor is closed all the same.
#include "base/file_descriptor.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.hpp"

namespace capstan {

void FileDescriptorTraits::free(type fd) noexcept {
  if (::close(fd) != 0) log::warn("close of file descriptor {}: {}", fd, std::strerror(errno));
}

}  // namespace capstan
