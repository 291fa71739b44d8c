// thread_pool.cpp -- see thread_pool.hpp.
#include "launch/serve/thread_pool.hpp"

#include <utility>

namespace capstan::launch::serve {

ThreadPool::ThreadPool(int threads, int queue) : capacity_(static_cast<std::size_t>(threads + queue)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() { shutdown(); }

bool ThreadPool::try_add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || running_ + waiting_.size() >= capacity_) return false;
    waiting_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

bool ThreadPool::has_waiting() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

void ThreadPool::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::function<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
    lock.unlock();
    task();
    lock.lock();
    --running_;
  }
}

}  // namespace capstan::launch::serve
