// doorbell.hpp -- wakes a thread of another process of this host with one system call.
#pragma once

#include <string>

#include "base/file_descriptor.hpp"

namespace capstan::transport {

/// A Unix datagram socket with an abstract name, which leaves no file behind. Fabric::wait polls it. A UCX
/// message over TCP would also wake the thread, but takes longer.
class Doorbell {
 public:
  /// Throws Error(internal) if no socket can be opened.
  Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// Readable from signal() until clear().
  int fd() const noexcept { return fd_.get(); }
  /// The name that another process passes to signal(). Random, so that it is unique across network
  /// namespaces.
  const std::string& name() const noexcept { return name_; }
  void clear() noexcept;
  /// Signals the doorbell with this name. Returns false if there is none in this network namespace.
  bool signal(const std::string& name) noexcept;

 private:
  FileDescriptor fd_;
  std::string name_;
};

}  // namespace capstan::transport
