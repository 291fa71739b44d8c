// communicator.cpp -- checks collective calls, enqueues them on all streams, and waits with a deadline.
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

/// Number of polls before a wait sleeps between polls: a small call takes a few tens of microseconds.
constexpr int kPollsBeforeSleep = 1000;
constexpr std::chrono::microseconds kPollInterval{50};

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
  if (streams.empty())
    throw Error(Code::invalid_argument, "group of GPUs: found no GPU, expected at least one");
  for (auto one = streams.begin(); one != streams.end(); ++one) {
    const auto again = std::find_if(std::next(one), streams.end(),
                                    [&](const Stream* other) { return other->device() == (*one)->device(); });
    if (again == streams.end()) continue;
    throw Error(Code::invalid_argument,
                fmt::format("group of GPUs: GPU {} occurs more than once; use at most one replica per GPU",
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
    waited_.emplace_back(stream->device());
  }
  if (size() == 1) return;
  std::vector<int> devices;
  for (const Stream* stream : streams_) devices.push_back(stream->device());
  async_teardown().require_finished(devices, timeout);
  driver_ = are_stand_ins() ? make_stand_in_driver(streams_) : real::make_group_driver(streams_);
}
Communicator::~Communicator() = default;

void Communicator::all_reduce(Combine combine, DType dtype, std::size_t count, std::span<const Part> parts) {
  enqueue({GroupCall::Kind::all_reduce, dtype, count, combine}, parts);
}
void Communicator::all_gather(DType dtype, std::size_t count, std::span<const Part> parts) {
  enqueue({GroupCall::Kind::all_gather, dtype, count}, parts);
}
void Communicator::reduce_scatter(Combine combine, DType dtype, std::size_t count,
                                  std::span<const Part> parts) {
  enqueue({GroupCall::Kind::reduce_scatter, dtype, count, combine}, parts);
}
void Communicator::broadcast(int root, DType dtype, std::size_t count, std::span<const Part> parts) {
  enqueue({GroupCall::Kind::broadcast, dtype, count, Combine::sum, root}, parts);
}

void Communicator::check(const GroupCall& call, std::span<const Part> parts) const {
  if (parts.size() != streams_.size()) {
    throw Error(Code::invalid_argument, fmt::format("{}: found {} arrays, expected {}, one per GPU",
                                                    to_string(call), parts.size(), streams_.size()));
  }
  if (call.root < 0 || call.root >= size()) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: the root is {}, expected at least 0 and less than {}", to_string(call),
                            call.root, size()));
  }
  if (combines(call.kind) && call.combine == Combine::mean && !is_floating(call.dtype)) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: the mean of integers is not supported; use the sum", to_string(call)));
  }
}

void Communicator::enqueue(const GroupCall& call, std::span<const Part> parts) {
  check(call, parts);
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (call.count == 0) return;
  if (driver_ == nullptr) return enqueue_copy(call, parts[0]);
  try {
    if (const std::string error = driver_->failure(); !error.empty()) {
      throw Error(Code::internal, fmt::format("{} (detected after {})", error, last_));
    }
    last_ = to_string(call);
    for (std::size_t rank = 0; rank < streams_.size(); ++rank) before_[rank].record(*streams_[rank]);
    driver_->enqueue(call, parts);
    for (std::size_t rank = 0; rank < streams_.size(); ++rank) after_[rank].record(*streams_[rank]);
  } catch (const Error&) {
    fail(std::current_exception());
  }
}

void Communicator::enqueue_copy(const GroupCall& call, const Part& part) {
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
      waited_[at].record(*streams_[at]);
    }
  }
  const auto deadline = Clock::now() + timeout;
  for (int polls = 0;; ++polls) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      if (are_done(ranks)) return;
      if (Clock::now() > deadline) fail_after_timeout(ranks, timeout);
    }
    if (polls < kPollsBeforeSleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPollInterval);
    }
  }
}

bool Communicator::are_done(std::span<const int> ranks) {
  try {
    if (driver_ != nullptr) {
      if (const std::string error = driver_->failure(); !error.empty()) {
        throw Error(Code::internal, fmt::format("{} (detected during {})", error, last_));
      }
    }
    if (!devices_before(before_).empty()) return false;
    if (are_stand_ins()) (void)devices_before(after_);  // each poll runs one task of a stand-in
    const auto has = [this](int rank) { return waited_[static_cast<std::size_t>(rank)].done(); };
    if (std::count_if(ranks.begin(), ranks.end(), has) < static_cast<std::ptrdiff_t>(ranks.size())) {
      return false;
    }
    for (const int rank : ranks) waited_[static_cast<std::size_t>(rank)].wait();  // throws if the work failed
    return true;
  } catch (const Error&) {
    fail(std::current_exception());
  } catch (const std::exception& error) {
    fail(std::make_exception_ptr(Error(Code::internal, fmt::format("GPU work failed: {}", error.what()))));
  }
}

std::vector<int> Communicator::devices_before(const std::vector<Event>& events) const {
  std::vector<int> late;
  for (std::size_t rank = 0; rank < streams_.size(); ++rank) {
    if (!events[rank].done()) late.push_back(streams_[rank]->device());
  }
  return late;
}

void Communicator::fail_after_timeout(std::span<const int> ranks, std::chrono::milliseconds timeout) {
  const auto late = [&](const std::string& text) {
    return Error(Code::deadline_exceeded, fmt::format("{} within {} ms", text, timeout.count()));
  };
  if (const auto absent = devices_before(before_); !absent.empty()) {
    fail(std::make_exception_ptr(late(fmt::format("{} did not start {}", gpu_list(absent), last_))));
  }
  if (const auto slow = devices_before(after_); !slow.empty()) {
    fail(std::make_exception_ptr(late(fmt::format("{} did not finish {}", gpu_list(slow), last_))));
  }
  std::vector<int> busy;  // GPUs with unfinished work other than the group's calls: the group has not failed
  for (const int rank : ranks) {
    if (!waited_[static_cast<std::size_t>(rank)].done()) busy.push_back(device(rank));
  }
  if (!busy.empty()) throw late(fmt::format("{} did not finish the work of its stream", gpu_list(busy)));
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
