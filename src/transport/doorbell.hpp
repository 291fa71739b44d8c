// doorbell.hpp -- wakes a thread of another process on this host with one system call.
#pragma once

#include <string>

#include "base/file_descriptor.hpp"

namespace capstan::transport {

/// A datagram socket with an abstract name, which leaves no file behind. A UCX message over TCP wakes, too,
/// and takes longer. Fabric::wait polls it.
class Doorbell {
 public:
  /// Throws Error(internal) when the system has no socket left.
  Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// Readable while it rings.
  int fd() const noexcept { return fd_.get(); }
  /// What another process passes to `ring`. Random, so that it names nothing in another network namespace.
  const std::string& name() const noexcept { return name_; }
  void silence() noexcept;
  /// Rings the bell of that name. False when it is not there, or in another network namespace.
  bool ring(const std::string& name) noexcept;

 private:
  FileDescriptor fd_;
  std::string name_;
};

}  // namespace capstan::transport
