// file_descriptor.cpp -- logs a failed close(2); Linux closes the descriptor even then.
#include "base/file_descriptor.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.hpp"

namespace capstan {

void FileDescriptorTraits::free(type fd) noexcept {
  if (::close(fd) != 0) log::warn("close() of file descriptor {} failed: {}", fd, std::strerror(errno));
}

}  // namespace capstan
