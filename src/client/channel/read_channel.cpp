// read_channel.cpp -- the call that all paths share.
#include "client/channel/read_channel.hpp"

#include "capstan/serialize.hpp"
#include "transport/bytes.hpp"

namespace capstan::client {

protocol::GroupClocks group_clocks(PsSession& session, std::uint32_t group) {
  return from_bytes<protocol::GroupClocks>(
      session.call(transport::kGroupClocks, transport::as_bytes(group), "report the steps of a group"));
}

}  // namespace capstan::client
