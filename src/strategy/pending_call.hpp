// pending_call.hpp -- reads and pushes that a Pending waits for.
#pragma once

#include <cstdint>
#include <utility>

#include "client/client.hpp"
#include "strategy/context.hpp"

namespace capstan::strategy {

/// Used by the thread that created it.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  virtual bool ready() = 0;
  virtual void wait() = 0;
};

/// A read in flight. Its destructor cancels it.
class PendingRead final : public PendingCall {
 public:
  PendingRead(Context& context, client::Client::Reading reading) : context_(context), reading_(reading) {}
  ~PendingRead() override {
    if (reading_ != 0) context_.use_client()->cancel(reading_);
  }
  PendingRead(const PendingRead&) = delete;
  PendingRead& operator=(const PendingRead&) = delete;

  bool ready() override { return context_.use_client()->ready(reading_); }
  void wait() override { context_.use_client()->finish(std::exchange(reading_, 0)); }

 private:
  Context& context_;
  client::Client::Reading reading_;
};

/// All pushes to some ps before its creation.
class PendingPush final : public PendingCall {
 public:
  PendingPush(Context& context, client::Client::PushPositions positions)
      : context_(context), positions_(std::move(positions)) {}

  bool ready() override { return context_.use_client()->applied(positions_); }
  void wait() override { context_.use_client()->wait(positions_); }

 private:
  Context& context_;
  client::Client::PushPositions positions_;
};

}  // namespace capstan::strategy
