// ps_connection.cpp -- chooses channels, and sends entries for counters, learning rates and steps.
#include "client/channel/ps_connection.hpp"

#include <bit>

#include "capstan/serialize.hpp"
#include "client/channel/in_process_push_channel.hpp"
#include "client/channel/message_push_channel.hpp"

namespace capstan::client {

PsConnection::Channels PsConnection::choose_channels() {
  const PsProcess& process = session_.process();
  Channels chosen;
  chosen.relocations = session_.relocations();
  switch (process.path) {
    case Path::in_process:
    case Path::mapped:
      chosen.reads = std::make_unique<MappedReadChannel>(session_);
      break;
    case Path::rma:
      chosen.reads = std::make_unique<RmaReadChannel>(session_);
      break;
    case Path::messages:
      chosen.reads = std::make_unique<MessageReadChannel>(session_);
      break;
  }
  // A store in this process accepts pushes regardless of how its memory is read.
  if (process.sink != nullptr) {
    const int rank = session_.rank();
    const int ps = session_.ps();
    chosen.pushes = std::make_unique<InProcessPushChannel>(*process.sink, rank, ps);
    chosen.gpu_pushes = std::make_unique<InProcessGpuPushChannel>(*process.sink, rank, ps);
  } else if (process.path == Path::messages) {
    chosen.pushes = std::make_unique<MessagePushChannel>(session_);
  } else {
    auto ring = std::make_unique<RingPushChannel>(session_);
    if (process.path == Path::mapped)
      chosen.gpu_pushes = std::make_unique<StagedGpuPushChannel>(session_, *ring);
    chosen.pushes = std::move(ring);
  }
  return chosen;
}

void PsConnection::replace_channels() {
  if (has_lost_pushes()) losses_[channels_.relocations] = channels_.pushes->known_applied();
  channels_ = choose_channels();
}

void PsConnection::connect_now() {
  const bool lost = has_lost_pushes();
  session_.connect();
  if (!lost) return;
  replace_channels();
  throw session_.lost_pushes();
}

bool PsConnection::lost(const PushPosition& position) {
  (void)channels();  // records the losses of the last relocation
  const auto loss = losses_.find(position.relocations);
  return loss != losses_.end() && position.in_channel > loss->second;
}

bool PsConnection::applied(const PushPosition& position) {
  session_.fabric().progress();
  if (!session_.alive() || position.relocations != session_.relocations()) return true;
  try {
    return pushes().applied(position.in_channel);
  } catch (const Error&) {
    return true;  // `wait` throws the same error
  }
}

void PsConnection::wait(const PushPosition& position) {
  if (lost(position)) throw session_.lost_pushes();
  if (position.relocations == session_.relocations()) pushes().wait(position.in_channel);
}

void PsConnection::count(std::uint32_t counter, std::uint64_t delta, PushNumbering& numbering) {
  protocol::PushHeader header;
  header.kind = protocol::PushKind::count;
  header.variable = counter;
  header.first_row = delta;
  numbering.number(header, session_.ps());
  pushes().send(header);
}

void PsConnection::set_learning_rate(std::uint32_t variable, std::uint32_t shard, double rate,
                                     PushNumbering& numbering) {
  protocol::PushHeader header;
  header.kind = protocol::PushKind::learning_rate;
  header.variable = variable;
  header.shard = shard;
  header.first_row = std::bit_cast<std::uint64_t>(rate);
  numbering.number(header, session_.ps());
  pushes().send(header);
}

void PsConnection::end_step(std::uint32_t group, std::uint64_t step) {
  protocol::PushHeader header;
  header.kind = protocol::PushKind::step;
  header.variable = group;
  header.first_row = step;
  pushes().send(header);
}

std::uint64_t PsConnection::fetch_add(std::uint64_t counter, std::uint64_t delta) {
  session_.require_alive();
  if (session_.process().counts_by_call) {
    return from_bytes<std::uint64_t>(session_.call(
        transport::kFetchAdd, to_bytes(protocol::FetchAdd{counter, delta}), "add to a counter"));
  }
  pushes().require_accepted();
  return session_.board().fetch_add(counter, delta);
}

const std::byte* PsConnection::gpu_values(const GpuRows& reader, std::uint32_t variable,
                                          std::uint32_t shard) {
  return session_.gpu_memory().values({reader.gpu(), variable, shard}, reader.last_use(), [&] {
    return session_.call(transport::kGpuKey, to_bytes(std::pair(variable, shard)), "export its GPU memory");
  });
}

}  // namespace capstan::client
