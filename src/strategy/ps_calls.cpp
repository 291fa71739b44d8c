// ps_calls.cpp -- starts all calls before it waits for the first reply.
#include "strategy/ps_calls.hpp"

#include <optional>

namespace capstan::strategy {

std::vector<std::vector<std::byte>> ask_every_ps(client::Client& client, std::uint16_t type,
                                                 transport::Bytes request, std::chrono::milliseconds timeout,
                                                 const std::string& purpose) {
  client::PsConnections& connections = client.connections();
  std::vector<transport::RpcClient::Id> calls;
  for (int ps = 0; ps < client.runtime().count(Role::ps); ++ps) {
    calls.push_back(connections.rpc().start(connections.live_connection(ps).peer(), type, request));
  }
  std::vector<std::vector<std::byte>> replies;
  for (const auto call : calls) replies.push_back(connections.rpc().wait(call, timeout, purpose));
  return replies;
}

void ask_each_ps(client::Client& client, std::uint16_t type,
                 const std::vector<std::vector<std::byte>>& requests, std::chrono::milliseconds timeout,
                 const std::string& purpose) {
  client::PsConnections& connections = client.connections();
  std::vector<transport::RpcClient::Id> calls;
  for (std::size_t ps = 0; ps < requests.size(); ++ps) {
    calls.push_back(connections.rpc().start(connections.live_connection(static_cast<int>(ps)).peer(), type,
                                            requests[ps]));
  }
  std::optional<Error> refused;
  for (const auto call : calls) {
    const transport::RpcOutcome outcome = connections.rpc().outcome(call, timeout, purpose);
    if (outcome.unanswered()) throw *outcome.error;
    if (!refused) refused = outcome.error;
  }
  if (refused) throw *refused;
}

}  // namespace capstan::strategy
