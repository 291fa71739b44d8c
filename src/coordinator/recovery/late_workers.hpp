// late_workers.hpp -- the coordinator's side of the join listener: who is asked for what, and who comes in.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cluster/bootstrap/join_listener.hpp"
#include "cluster/bootstrap/run_directory.hpp"
#include "cluster/runtime.hpp"

namespace capstan::coordinator {

/// Each worker that comes gets a rank and an index that nobody has had; from then on it is taken in like one
/// that was started again.
class LateWorkers {
 public:
  /// `status`: text for `capstan status`; `figures`: JSON for `capstan top`. `come`: there is somebody to
  /// take. All are called on the listener's thread.
  LateWorkers(cluster::Runtime& runtime, std::function<std::string()> status,
              std::function<std::string()> figures, std::function<void()> come)
      : runtime_(runtime), status_(std::move(status)), figures_(std::move(figures)), come_(std::move(come)) {}
  ~LateWorkers() { close(); }

  /// With --run-dir: opens the listener, and writes the file that says where it is. Throws Error:
  /// already_exists when another job's listener answers there.
  void open();
  /// Nobody comes any more; the file goes first.
  void close() noexcept;

  /// Some more may still come.
  bool may_come() const noexcept { return is_open_ && came_ < runtime_.table().late; }
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// Who has come since the last time.
  std::vector<cluster::Member> take();

 private:
  cluster::JoinAnswer answer(cluster::JoinRequest request, std::span<const std::byte> body);
  cluster::Table let_in(const cluster::Hello& hello);

  cluster::Runtime& runtime_;
  std::function<std::string()> status_;
  std::function<std::string()> figures_;
  std::function<void()> come_;
  std::string run_dir_;
  cluster::RunFile file_;
  std::uint64_t build_ = 0;  // hash of the binary
  std::atomic<bool> is_open_{false};
  std::atomic<int> came_{0};
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<cluster::Member> waiting_;
  std::unique_ptr<cluster::JoinListener> listener_;
};

}  // namespace capstan::coordinator
