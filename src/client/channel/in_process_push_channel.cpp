// in_process_push_channel.cpp -- sends each push as a single entry of any size.
#include "client/channel/in_process_push_channel.hpp"

namespace capstan::client {

void InProcessPushChannel::push(const PushRows& of_caller, PushNumbering& numbering, bool /*more*/) {
  PushRows push = of_caller;
  push.bfloat16 = false;  // nothing is sent
  if (push.arrival != nullptr) (*push.arrival)(push.count * push.row_bytes);
  const std::byte* values = push.gradient;
  if (!push.order.empty()) {
    gathered_.resize(push.count * push.row_bytes);
    copy_rows(push, 0, push.count, gathered_.data(), 0);  // exact: needs no seed
    values = gathered_.data();
  }
  protocol::PushHeader header = header_of(push, 0, push.count, rank_);
  numbering.number(header, ps_);
  sink_.apply(header, all_numbers(push, row_numbers_), values);
}

void InProcessPushChannel::send(protocol::PushHeader header) {
  header.rank = static_cast<std::uint32_t>(rank_);
  header.bytes = sizeof header;
  sink_.apply(header, {}, nullptr);
}

}  // namespace capstan::client
