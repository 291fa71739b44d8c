// thread_pool.hpp -- a fixed number of threads, and a bounded queue of tasks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace capstan::launch::serve {

class ThreadPool {
 public:
  ThreadPool(int threads, int queue);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  /// As shutdown().
  ~ThreadPool();

  /// Returns false if all threads are busy and the queue is full.
  [[nodiscard]] bool try_add(std::function<void()> task);
  /// Returns whether tasks wait for a thread.
  bool has_waiting() const;
  /// Runs the tasks of the queue, and joins the threads.
  void shutdown();

 private:
  void work();

  std::size_t capacity_;  // tasks that run or wait
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::size_t running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace capstan::launch::serve
