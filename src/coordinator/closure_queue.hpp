// closure_queue.hpp -- what is scheduled, what runs, what went wrong. The rules of TensorFlow's closure
// queue.
#pragma once

#include <chrono>
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
#include "coordinator/result.hpp"

namespace capstan::coordinator {

constexpr int kAnyWorker = -1;

struct Closure {
  std::uint64_t id = 0;
  std::uint32_t function = 0;
  int worker = kAnyWorker;
  bool again = false;  // a worker that has died may have begun it
  std::vector<std::byte> arguments;
  std::shared_ptr<Result> result;
};

/// Thread-safe. One thread schedules and joins, another takes closures and says how they ended.
class ClosureQueue {
 public:
  /// `limit`: closures that are queued before put() waits; 0 = any number. `waiter` is how put and join wait,
  /// and is nudged when there is something to take that was not there at the last take.
  ClosureQueue(std::size_t limit, std::shared_ptr<Waiter> waiter)
      : limit_(limit), board_(std::make_shared<ResultBoard>(std::move(waiter))) {}

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
  /// It is there again.
  void regain(int worker);
  bool lost(int worker) const;
  /// It is, or was.
  bool has_been_lost(int worker) const;

  bool empty() const;
  bool broken() const noexcept { return board_->broken; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  void wait(Lock& lock, const std::function<bool()>& done);
  void cancel_queued(Code code, const std::string& message);
  void raise_if_failed(Lock& lock);
  void settle_as_lost(const Closure& closure);
  void stop_running(const Closure& closure);

  std::size_t limit_;
  std::shared_ptr<ResultBoard> board_;  // its mutex is the queue's
  std::deque<Closure> queued_;
  std::size_t running_ = 0;
  bool hungry_ = true;                                 // the last take found nothing
  std::map<int, std::deque<Closure>> queued_for_one_;  // by worker
  std::set<int> lost_;
  std::set<int> have_been_lost_;
  std::uint64_t next_id_ = 1;
  std::optional<Error> error_;
  bool broken_ = false;
};

}  // namespace capstan::coordinator
