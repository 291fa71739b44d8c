// communicator.cpp -- calls are checked, given to all streams, and waited for with a deadline.
#include "gpu/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "capstan/error.hpp"
#include "gpu/async_teardown.hpp"
#include "gpu/group_driver.hpp"

namespace capstan::gpu {
namespace {

using Clock = std::chrono::steady_clock;

/// Looks before a wait sleeps between them: a small call is done in a few tens of microseconds.
constexpr int kLooksAtOnce = 1000;
constexpr std::chrono::microseconds kNap{50};

const char* name_of(GroupCall::Kind kind) {
  switch (kind) {
    case GroupCall::Kind::all_reduce:
      return "all_reduce";
    case GroupCall::Kind::all_gather:
      return "all_gather";
    case GroupCall::Kind::reduce_scatter:
      return "reduce_scatter";
    case GroupCall::Kind::broadcast:
      return "broadcast";
  }
  return "unknown";
}

bool combines(GroupCall::Kind kind) {
  return kind == GroupCall::Kind::all_reduce || kind == GroupCall::Kind::reduce_scatter;
}

void require_each_once(const std::vector<const Stream*>& streams) {
  if (streams.empty()) throw Error(Code::invalid_argument, "a group of GPUs has at least one");
  for (auto one = streams.begin(); one != streams.end(); ++one) {
    const auto again = std::find_if(std::next(one), streams.end(),
                                    [&](const Stream* other) { return other->device() == (*one)->device(); });
    if (again == streams.end()) continue;
    throw Error(Code::invalid_argument,
                fmt::format("GPU {} is in the group twice: each GPU is in it once; use fewer replicas",
                            (*one)->device()));
  }
}

}  // namespace

std::string to_string(const GroupCall& call) {
  return fmt::format("{} of {} {}", name_of(call.kind), call.count,
                     call.dtype == DType::boolean ? "uint8" : to_string(call.dtype));
}

std::string why_no_group() { return are_stand_ins() ? "" : real::why_no_group(); }

Communicator::Communicator(std::vector<const Stream*> streams, std::chrono::milliseconds timeout)
    : streams_(std::move(streams)) {
  require_each_once(streams_);
  for (const Stream* stream : streams_) {
    before_.emplace_back(stream->device());
    after_.emplace_back(stream->device());
    end_.emplace_back(stream->device());
  }
  if (size() == 1) return;
  std::vector<int> devices;
  for (const Stream* stream : streams_) devices.push_back(stream->device());
  async_teardown().require_finished(devices, timeout);
  driver_ = are_stand_ins() ? make_stand_in_driver(streams_) : real::make_group_driver(streams_);
}
Communicator::~Communicator() = default;

void Communicator::all_reduce(Combine combine, DType dtype, std::size_t count, std::span<const Part> parts) {
  give({GroupCall::Kind::all_reduce, dtype, count, combine}, parts);
}
void Communicator::all_gather(DType dtype, std::size_t count, std::span<const Part> parts) {
  give({GroupCall::Kind::all_gather, dtype, count}, parts);
}
void Communicator::reduce_scatter(Combine combine, DType dtype, std::size_t count,
                                  std::span<const Part> parts) {
  give({GroupCall::Kind::reduce_scatter, dtype, count, combine}, parts);
}
void Communicator::broadcast(int root, DType dtype, std::size_t count, std::span<const Part> parts) {
  give({GroupCall::Kind::broadcast, dtype, count, Combine::sum, root}, parts);
}

void Communicator::check(const GroupCall& call, std::span<const Part> parts) const {
  if (parts.size() != streams_.size()) {
    throw Error(Code::invalid_argument, fmt::format("{}: {} arrays for a group of {} GPUs", to_string(call),
                                                    parts.size(), streams_.size()));
  }
  if (call.root < 0 || call.root >= size()) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: the root is {}; expected at least 0 and less than {}", to_string(call),
                            call.root, size()));
  }
  if (combines(call.kind) && call.combine == Combine::mean && !is_floating(call.dtype)) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: integers have no mean in place; take the sum", to_string(call)));
  }
}

void Communicator::give(const GroupCall& call, std::span<const Part> parts) {
  check(call, parts);
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (call.count == 0) return;
  if (driver_ == nullptr) return give_to_one(call, parts[0]);
  try {
    if (const std::string error = driver_->failure(); !error.empty()) {
      throw Error(Code::internal, fmt::format("{} after {}", error, last_));
    }
    last_ = to_string(call);
    for (std::size_t rank = 0; rank < streams_.size(); ++rank) before_[rank].record(*streams_[rank]);
    driver_->give(call, parts);
    for (std::size_t rank = 0; rank < streams_.size(); ++rank) after_[rank].record(*streams_[rank]);
  } catch (const Error&) {
    fail(std::current_exception());
  }
}

void Communicator::give_to_one(const GroupCall& call, const Part& part) {
  if (part.in != part.out) copy(*streams_[0], part.out, part.in, call.count * size_of(call.dtype));
}

void Communicator::wait(std::chrono::milliseconds timeout) {
  std::vector<int> all(streams_.size());
  std::iota(all.begin(), all.end(), 0);
  await(all, timeout);
}
void Communicator::wait(int rank, std::chrono::milliseconds timeout) { await({&rank, 1}, timeout); }

void Communicator::await(std::span<const int> ranks, std::chrono::milliseconds timeout) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    for (const int rank : ranks) {
      const auto at = static_cast<std::size_t>(rank);
      end_[at].record(*streams_[at]);
    }
  }
  const auto deadline = Clock::now() + timeout;
  for (int looks = 0;; ++looks) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      if (have_done(ranks)) return;
      if (Clock::now() > deadline) give_up_late_call(ranks, timeout);
    }
    if (looks < kLooksAtOnce) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

bool Communicator::have_done(std::span<const int> ranks) {
  try {
    if (driver_ != nullptr) {
      if (const std::string error = driver_->failure(); !error.empty()) {
        throw Error(Code::internal, fmt::format("{} in {}", error, last_));
      }
    }
    if (!devices_not_past(before_).empty()) return false;
    if (are_stand_ins()) (void)devices_not_past(after_);  // each gets on by one piece of work for each look
    const auto has = [this](int rank) { return end_[static_cast<std::size_t>(rank)].done(); };
    if (std::count_if(ranks.begin(), ranks.end(), has) < static_cast<std::ptrdiff_t>(ranks.size())) {
      return false;
    }
    for (const int rank : ranks) end_[static_cast<std::size_t>(rank)].wait();  // throws what has failed
    return true;
  } catch (const Error&) {
    fail(std::current_exception());
  } catch (const std::exception& error) {
    fail(std::make_exception_ptr(
        Error(Code::internal, fmt::format("work of a GPU failed: {}", error.what()))));
  }
}

std::vector<int> Communicator::devices_not_past(const std::vector<Event>& events) const {
  std::vector<int> late;
  for (std::size_t rank = 0; rank < streams_.size(); ++rank) {
    if (!events[rank].done()) late.push_back(streams_[rank]->device());
  }
  return late;
}

void Communicator::give_up_late_call(std::span<const int> ranks, std::chrono::milliseconds timeout) {
  const auto late = [&](const std::string& text) {
    return Error(Code::deadline_exceeded, fmt::format("{} within {} ms", text, timeout.count()));
  };
  if (const auto absent = devices_not_past(before_); !absent.empty()) {
    fail(std::make_exception_ptr(late(fmt::format("{} did not come to {}", names_of_gpus(absent), last_))));
  }
  if (const auto slow = devices_not_past(after_); !slow.empty()) {
    fail(std::make_exception_ptr(late(fmt::format("{} did not end {}", names_of_gpus(slow), last_))));
  }
  std::vector<int> busy;  // with work of its own, which nobody else waits for
  for (const int rank : ranks) {
    if (!end_[static_cast<std::size_t>(rank)].done()) busy.push_back(device(rank));
  }
  if (!busy.empty()) throw late(fmt::format("{} did not end the work of its stream", names_of_gpus(busy)));
}

bool Communicator::has_failed() const {
  const std::lock_guard lock(mutex_);
  return failure_ != nullptr;
}

void Communicator::fail(std::exception_ptr error) {
  failure_ = std::move(error);
  if (driver_ != nullptr) driver_->abort();
  std::rethrow_exception(failure_);
}

}  // namespace capstan::gpu
