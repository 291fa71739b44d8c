// networks.hpp -- fabrics of both kinds in one process, so that one test body runs on both.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/fabric.hpp"
#include "transport/loop/loop.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::transport {

/// Timeout that no healthy operation exceeds, even under a sanitizer on a busy machine.
inline constexpr std::chrono::seconds kTimeout{20};

enum class Kind { loop, ucx };

class NetworkTest : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Fabric> open_alone(int rank) {
    auto fabric = GetParam() == Kind::loop ? hub_.open() : std::make_unique<UcxFabric>();
    fabric->set_rank(rank);
    return fabric;
  }
  /// Creates a fabric that is closed together with all others at the end of the test.
  std::shared_ptr<Fabric> open(int rank) { return open_.emplace_back(open_alone(rank)); }
  /// Closes the fabric now, like the death of its rank.
  void end(std::shared_ptr<Fabric>& fabric) {
    std::erase(open_, fabric);
    fabric.reset();
  }
  /// Closes all fabrics concurrently: an endpoint closes when both ends progress, or after a second.
  void TearDown() override {
    for (const auto& fabric : open_) fabric->remove_handlers();
    std::vector<std::jthread> closing;
    for (auto& fabric : open_) closing.emplace_back([last = std::move(fabric)]() mutable { last.reset(); });
  }
  bool is_ucx() const { return GetParam() == Kind::ucx; }

 private:
  LoopHub hub_;
  std::vector<std::shared_ptr<Fabric>> open_;
};

/// Polls without sleeping, for conditions that no fabric signals.
template <class Done>
bool spin_until(Fabric& fabric, const Done& done) {
  const Deadline deadline = deadline_in(kTimeout);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    if (fabric.progress() == 0) std::this_thread::yield();
  }
  return true;
}

inline std::string kind_name(const testing::TestParamInfo<Kind>& kind) {
  return kind.param == Kind::loop ? "loop" : "ucx";
}

#define CAPSTAN_ON_BOTH_NETWORKS(suite) \
  INSTANTIATE_TEST_SUITE_P(Networks, suite, testing::Values(Kind::loop, Kind::ucx), kind_name)

inline Peer& connect(Fabric& from, const Fabric& to, const std::string& name) {
  return from.connect(to.rank(), name, to.address());
}

/// Progresses a fabric in its own thread, which owns the fabric meanwhile.
class Progressing {
 public:
  explicit Progressing(Fabric& fabric) : fabric_(fabric) {
    thread_ = std::jthread([this] {
      while (!stop_) {
        if (fabric_.progress() == 0) fabric_.wait(std::chrono::milliseconds(50));
      }
    });
  }
  ~Progressing() {
    stop_ = true;
    fabric_.wake();
  }

 private:
  Fabric& fabric_;
  std::atomic<bool> stop_{false};
  std::jthread thread_;  // last, since it uses the others
};

inline Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
Bytes value_bytes(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}
template <class T>
T value_of(Bytes bytes) {
  T value{};
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Bytes that depend on `seed` and on their position.
inline std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = static_cast<std::byte>((i * 131 + seed * 29 + (i >> 8)) & 0xff);
  return out;
}

}  // namespace capstan::transport
