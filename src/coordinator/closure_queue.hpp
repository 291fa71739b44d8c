// closure_queue.hpp -- what is scheduled, what runs, what went wrong. The rules of TensorFlow's closure
// queue.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capstan/error.hpp"

namespace capstan::coordinator {

/// Shared by the program (fetch) and the queue. `mutex` and `changed` are the queue's.
struct Result {
  enum class State : std::uint8_t { pending, ready, failed };
  std::shared_ptr<std::mutex> mutex;
  std::shared_ptr<std::condition_variable> changed;
  State state = State::pending;
  std::vector<std::byte> bytes;
  Code code = Code::ok;
  std::string message;
};

constexpr int kAnyWorker = -1;

struct Closure {
  std::uint64_t id = 0;
  std::uint32_t function = 0;
  std::vector<std::byte> arguments;
  std::shared_ptr<Result> result;
  int worker = kAnyWorker;
};

/// Thread-safe. One thread schedules and joins, another takes closures and says how they ended.
class ClosureQueue {
 public:
  explicit ClosureQueue(std::size_t limit) : limit_(limit) {}

  /// Waits while the queue is full. Throws the stored error, as do join and done.
  std::shared_ptr<Result> put(std::uint32_t function, std::vector<std::byte> arguments);
  /// True when all is done; false after `timeout`.
  bool join(std::optional<std::chrono::milliseconds> timeout);
  bool done();

  /// The next closure to run, which counts as running from now on; nothing when there is none, or an error is
  /// waiting to be raised.
  std::optional<Closure> take();
  void finish(const Closure& closure, std::vector<std::byte> result);
  /// The closure keeps its own error; the first one of several is raised.
  void fail(const Closure& closure, Code code, const std::string& message);
  /// Its worker died: it is next in line again, or cancelled if an error is waiting to be raised.
  void put_back(Closure closure);
  /// Nothing can run any more. Ends every wait; put, join and done throw from now on.
  void break_down(Code code, const std::string& message);

  // Closures for one worker alone, TensorFlow's tagged ones. They stand apart: put, join and done neither
  // count them nor wait for them, an error of theirs is in their result alone, and they run while an error
  // waits to be raised.

  /// Fails at once, by its result, when the worker is lost. Throws when all has broken down.
  std::shared_ptr<Result> put_for(int worker, std::uint32_t function, std::vector<std::byte> arguments);
  std::optional<Closure> take_for(int worker);
  bool any_for_one() const;
  /// The worker died: what is queued for it fails, now and later.
  void lose(int worker);
  bool lost(int worker) const;

  bool empty() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  void settle(Result& result, Code code, const std::string& message);
  void cancel_queued(Code code, const std::string& message);
  void raise_if_failed(Lock& lock);
  std::shared_ptr<Result> new_result() const;
  void settle_as_lost(const Closure& closure);

  std::size_t limit_;
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
  std::shared_ptr<std::condition_variable> changed_ = std::make_shared<std::condition_variable>();
  std::deque<Closure> queued_;
  std::map<std::uint64_t, std::shared_ptr<Result>> running_;
  std::map<int, std::deque<Closure>> queued_for_one_;  // by worker
  std::map<std::uint64_t, std::shared_ptr<Result>> running_for_one_;
  std::set<int> lost_;
  std::uint64_t next_id_ = 1;
  std::optional<Error> error_;
  bool broken_ = false;
};

}  // namespace capstan::coordinator
