// receiver.hpp -- receives the rows of reads in flight while the thread that started the reads computes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "client/client.hpp"

namespace capstan::strategy {

/// A thread that progresses a client's data fabric while reads are in flight, and sleeps otherwise. It starts
/// with the first such read. While it is active, the threads that run user code lock the client, too.
class Receiver {
 public:
  /// `client` must outlive this object.
  explicit Receiver(client::Client& client) : client_(client) {}
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// Receives until no read is in flight. Called by a thread that runs user code, after it has started a
  /// read. If no thread can be started, logs a warning; the rows then arrive during other calls.
  void start();
  /// Returns true from `start` until no read is in flight. Each use of the client must be locked meanwhile.
  /// Only `start` makes it true.
  bool active() const noexcept { return active_.load(std::memory_order_acquire); }
  /// Locks the client. The receiver yields the lock after the message that it is processing.
  std::unique_lock<std::recursive_mutex> lock_client();

 private:
  void serve(const std::stop_token& stop);
  void receive(const std::stop_token& stop);
  /// Runs the handlers of messages that have arrived. Returns false once no read is in flight; active() is
  /// false then. Otherwise sets `armed` if the fabric may sleep.
  bool progress(bool& armed);

  client::Client& client_;
  std::recursive_mutex client_mutex_;
  std::atomic<int> callers_{0};  // threads that wait for client_mutex_ in lock_client()
  std::atomic<bool> active_{false};
  std::mutex mutex_;  // of the members below, and of changes of active_ to true
  std::condition_variable_any started_;
  bool cannot_start_ = false;
  bool warned_ = false;  // used by the receiver's thread only
  std::jthread thread_;  // last: uses all of the above
};

}  // namespace capstan::strategy
