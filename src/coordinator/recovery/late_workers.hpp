// late_workers.hpp -- the coordinator's side of the join listener: status, metrics, and workers that join
// late.
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

/// A worker that joins gets a new rank and a new index. It is then admitted like a restarted worker.
class LateWorkers {
 public:
  /// `status` returns the text of `capstan status`, and `metrics` the JSON of `capstan top`. `joined` is
  /// called when take() has a worker to return. All are called on the listener's thread.
  LateWorkers(cluster::Runtime& runtime, std::function<std::string()> status,
              std::function<std::string()> metrics, std::function<void()> joined)
      : runtime_(runtime),
        status_(std::move(status)),
        metrics_(std::move(metrics)),
        on_join_(std::move(joined)) {}
  ~LateWorkers() { close(); }

  /// With --run-dir: opens the listener, and writes the run file with its address. Throws
  /// Error(already_exists) if the listener of another job answers there.
  void open();
  /// Removes the run file, then closes the listener.
  void close() noexcept;

  /// Returns true if more workers may join.
  bool may_join() const { return !closed_ && has_listener() && joined_ < runtime_.table().late; }
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// Returns the workers that joined since the last call.
  std::vector<cluster::Member> take();

 private:
  bool has_listener() const { return !runtime_.settings().text("run-dir").empty(); }
  cluster::JoinAnswer answer(cluster::JoinRequest request, std::span<const std::byte> body);
  cluster::Table add(const cluster::Hello& hello);

  cluster::Runtime& runtime_;
  std::function<std::string()> status_;
  std::function<std::string()> metrics_;
  std::function<void()> on_join_;
  std::string run_dir_;
  cluster::RunFile file_;
  std::uint64_t build_ = 0;  // hash of the program
  std::atomic<bool> closed_{false};
  std::atomic<int> joined_{0};
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<cluster::Member> waiting_;
  std::unique_ptr<cluster::JoinListener> listener_;
};

}  // namespace capstan::coordinator
