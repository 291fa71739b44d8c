// fabric.cpp -- the code that both fabrics share: handlers, liveness, waiting.
#include "transport/fabric.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "capstan/error.hpp"

namespace capstan::transport {
namespace {

std::atomic<std::uint64_t> malformed{0};
// Indexed by message type. Types beyond the end share the last element.
std::array<std::atomic_flag, 256> logged_malformed;

}  // namespace

void count_malformed(const Message& message, std::size_t expected) noexcept {
  ++malformed;
  if (logged_malformed[std::min<std::size_t>(message.type, logged_malformed.size() - 1)].test_and_set())
    return;
  log::error(
      "dropped a message of type {} from rank {}: its header has {} bytes, expected {}; more of "
      "this type are not logged",
      message.type, message.from, message.header.size(), expected);
}

std::uint64_t malformed_messages() noexcept { return malformed; }

void Window::require_inside(std::uint64_t offset, std::uint64_t bytes) const {
  CAPSTAN_ASSERT(offset <= length_ && bytes <= length_ - offset);
}

void Peer::require_alive() const {
  if (failed_) throw Error(Code::unavailable, name_ + " is dead");
}

void Peer::revive(Bytes, const std::string&) {
  throw Error(Code::unimplemented, name_ + " is a thread of this process and cannot be replaced");
}

std::unique_ptr<Region> Fabric::adopt(std::span<std::byte>, const FileLocation&) {
  throw Error(Code::unimplemented, "a fabric between threads of one process has no persistent memory");
}

std::unique_ptr<Region> Fabric::reserve(std::size_t) {
  throw Error(Code::unimplemented, "a fabric between processes cannot reserve memory; use PersistentMemory");
}

void Fabric::on_message(std::uint16_t type, Handler handler) {
  if (handlers_.size() <= type) handlers_.resize(type + std::size_t{1});
  handlers_[type] = std::move(handler);
}

void Fabric::remove_handlers() noexcept {
  handlers_.clear();
  failure_handler_ = nullptr;
  silent_ = true;
  keeps_unhandled_ = false;
  unhandled_messages_.clear();
  unhandled_failures_.clear();
}

void Fabric::keep(const Message& message) {
  UnhandledMessage kept{message.type,
                        message.from,
                        {message.header.begin(), message.header.end()},
                        {message.payload.begin(), message.payload.end()}};
  std::erase(unhandled_messages_, kept);
  unhandled_messages_.push_back(std::move(kept));
}

unsigned Fabric::deliver_unhandled() noexcept {
  unsigned delivered = 0;
  for (std::size_t at = 0; at < unhandled_messages_.size();) {
    if (!has_handler(unhandled_messages_[at].type)) {
      ++at;
      continue;
    }
    const UnhandledMessage message = std::move(unhandled_messages_[at]);
    unhandled_messages_.erase(unhandled_messages_.begin() + static_cast<std::ptrdiff_t>(at));
    deliver({message.type, message.from, message.header, message.payload});
    ++delivered;
  }
  if (!failure_handler_ || unhandled_failures_.empty()) return delivered;
  for (Peer* peer : std::exchange(unhandled_failures_, {})) {
    if (!peer->failed()) continue;  // it has been revived
    report_failure(*peer);
    ++delivered;
  }
  return delivered;
}

void Fabric::deliver(const Message& message) noexcept {
  try {
    if (has_handler(message.type)) {
      handlers_[message.type](message);
    } else if (keeps_unhandled_) {
      keep(message);
    } else if (!silent_) {
      log::warn("message of type {} from rank {} has no handler here; dropped", message.type, message.from);
    }
  } catch (const std::exception& error) {
    log::error("handler of message type {} from rank {} threw: {}", message.type, message.from, error.what());
  }
}

void Fabric::report_failure(Peer& peer) noexcept {
  try {
    if (failure_handler_) {
      failure_handler_(peer);
    } else if (keeps_unhandled_) {
      unhandled_failures_.push_back(&peer);
    }
  } catch (const std::exception& error) {
    log::error("failure handler for {} threw: {}", peer.name(), error.what());
  }
}

void Subscriptions::on_message(std::uint16_t type, Fabric::Handler handler) {
  types_.push_back(type);
  fabric_.on_message(type, std::move(handler));
}

void Subscriptions::on_failure(Fabric::FailureHandler handler) {
  failures_ = true;
  fabric_.on_failure(std::move(handler));
}

void Subscriptions::end() noexcept {
  for (const std::uint16_t type : types_) fabric_.on_message(type, [](const Message&) {});
  types_.clear();
  if (std::exchange(failures_, false)) fabric_.on_failure({});
}

bool progress_until(Fabric& fabric, Deadline deadline, const std::function<bool()>& done) {
  // Polling catches answers that take tens of microseconds; after that other threads may need the core.
  constexpr int kSpins = 200;
  for (int idle = 0; !done();) {
    if (fabric.progress() != 0) {
      idle = 0;
      continue;
    }
    if (++idle <= kSpins) continue;
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return done();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now);
    fabric.wait(std::min(left + std::chrono::milliseconds(1), std::chrono::milliseconds(50)));
  }
  return true;
}

}  // namespace capstan::transport
