// pair_tester.cpp -- connects to ranks and serves incoming requests.
#include "launch/doctor/pair_tester.hpp"

#include <fmt/format.h>

#include <cstring>
#include <thread>
#include <utility>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/runtime.hpp"
#include "launch/doctor/pair_messages.hpp"

namespace capstan::launch::doctor {
namespace {

constexpr std::uint64_t kPattern = 0x646f63746f722121;  // an arbitrary value that fresh memory does not have
/// A serving rank busy-polls for this long after a message, since its replies are being timed.
constexpr std::chrono::microseconds kBusyPollTime{300};

/// Concatenates the vectors that all ranks contributed.
template <class T>
std::vector<T> all_of(const std::vector<Blob>& blobs) {
  std::vector<T> all;
  for (const Blob& blob : blobs) {
    for (T& one : from_bytes<std::vector<T>>(blob)) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

PairTester::PairTester(RankGroup& group) : group_(group) {
  own_.host = cluster::host_name();
  for (const Blob& blob : group_.all_gather(to_bytes(own_.host), "the hosts of all ranks"))
    hosts_.push_back(from_bytes<std::string>(blob));
  rounds_ = disjoint_rounds(representative_pairs(hosts_));
  try {
    open();
  } catch (const Error& error) {
    own_.failure = error.what();
  }
  for (const Blob& blob : group_.all_gather(to_bytes(own_), "all ranks to open UCX"))
    contacts_.push_back(from_bytes<Contact>(blob));
}

PairTester::~PairTester() { region_.reset(); }

void PairTester::open() {
  auto fabric = std::make_unique<transport::UcxFabric>();
  fabric->set_rank(group_.rank());
  bool measured = false;
  for (const auto& round : rounds_) {
    for (const Pair& pair : round) measured = measured || pair.second == group_.rank();
  }
  region_ = fabric->allocate(measured ? kMeasuredBytes : 4096);
  std::memcpy(region_->memory().data(), &kPattern, sizeof kPattern);
  const transport::RegionKey key = region_->key();
  own_.address = fabric->address();
  own_.region_address = key.address;
  own_.region_length = key.length;
  own_.region_key = key.packed;
  // A handler must not connect, so serve() replies to connect requests; pings are answered at once.
  fabric->on_message(kConnectRequest,
                     [this](const transport::Message& message) { pending_replies_.push_back(message.from); });
  fabric->on_message(kPing, [this](const transport::Message& message) {
    if (const auto found = peers_.find(message.from); found != peers_.end()) found->second->send(kReply, {});
  });
  fabric->on_message(kReply, [this](const transport::Message& message) { ++answers_[message.from]; });
  fabric->on_message(kPiece, [](const transport::Message&) {});
  fabric_ = fabric.release();
}

void PairTester::serve() {
  if (fabric_ == nullptr) {
    std::this_thread::sleep_for(kBusyPollTime);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (fabric_->progress() > 0) {
    last_event_ = now;
  } else if (now - last_event_ > kBusyPollTime) {
    fabric_->wait(std::chrono::milliseconds(1));
  }
  for (const int rank : std::exchange(pending_replies_, {})) peer(rank).send(kReply, {});
}

transport::Peer& PairTester::peer(int rank) {
  const auto found = peers_.find(rank);
  if (found != peers_.end()) return *found->second;
  const Contact& contact = contacts_.at(static_cast<std::size_t>(rank));
  transport::Peer& made =
      fabric_->connect(rank, fmt::format("rank {} on {}", rank, contact.host), contact.address);
  peers_.emplace(rank, &made);
  return made;
}

/// Connects and waits for a reply, which shows that both directions work. Throws Error.
transport::Peer& PairTester::reach(int rank) {
  if (fabric_ == nullptr) throw Error(Code::internal, own_.failure);
  const Contact& contact = contacts_.at(static_cast<std::size_t>(rank));
  if (!contact.failure.empty()) throw Error(Code::unavailable, contact.failure);
  transport::Peer& there = peer(rank);
  int& answers = answers_[rank];
  const int before = answers;
  there.send(kConnectRequest, {});
  const auto deadline = transport::deadline_in(kPairTimeout);
  while (answers == before && !there.failed() && std::chrono::steady_clock::now() < deadline) serve();
  if (answers == before)
    throw Error(Code::unavailable, fmt::format("{} does not answer over UCX", there.name()));
  return there;
}

Link PairTester::link_to(int rank) const {
  return {group_.rank(), rank, own_.host, hosts_.at(static_cast<std::size_t>(rank))};
}

std::unique_ptr<transport::Window> PairTester::window_onto(int rank, transport::WindowPath path) {
  const Contact& contact = contacts_.at(static_cast<std::size_t>(rank));
  return peer(rank).open_window({contact.region_address, contact.region_length, contact.region_key}, path);
}

Link PairTester::try_link(int rank) {
  Link link = link_to(rank);
  try {
    transport::Peer& there = reach(rank);
    link.transports = there.transports();
    link.hardware_rma = there.has_hardware_rma();
    const auto window = window_onto(rank, transport::WindowPath::automatic);
    link.mapped = window->mapped() != nullptr;
    std::uint64_t word = kPattern;
    if (link.mapped) std::memcpy(&word, window->mapped(), sizeof word);
    if (word != kPattern) link.failure = "the mapped memory does not have the pattern that the rank wrote";
  } catch (const Error& error) {
    link.failure = error.what();
  }
  return link;
}

std::vector<Link> PairTester::links() {
  std::vector<Link> mine;
  for (const int rank : connect_targets(group_.rank(), group_.size())) mine.push_back(try_link(rank));
  return all_of<Link>(group_.all_gather(to_bytes(mine), "all ranks to connect", [this] { serve(); }));
}

std::vector<Speed> PairTester::speeds() {
  std::vector<Speed> all;
  for (const auto& round : rounds_) {
    std::vector<Speed> mine;
    for (const Pair& pair : round) {
      if (pair.first == group_.rank()) mine.push_back(measure(pair.second));
    }
    for (Speed& speed :
         all_of<Speed>(group_.all_gather(to_bytes(mine), "latency and bandwidth", [this] { serve(); })))
      all.push_back(std::move(speed));
  }
  return all;
}

std::vector<RmaProbe> PairTester::rma_probes() {
  std::vector<RmaProbe> all;
  for (const auto& round : rounds_) {
    std::optional<int> target;
    for (const Pair& pair : round) {
      if (pair.first == group_.rank()) target = pair.second;
    }
    RmaProbe mine;
    if (target) mine.link = try_link(*target);
    group_.barrier("connections for the RMA probe", [this] { serve(); });
    // From here on no rank calls serve(), so that only hardware completes RMA.
    group_.barrier("all ranks to begin the RMA probe");
    if (target && mine.link.failure.empty()) run_rma_probe(*target, mine);
    group_.barrier("all puts of the RMA probe");
    std::vector<RmaProbe> found;
    if (target) found.push_back(std::move(mine));
    for (RmaProbe& probe : all_of<RmaProbe>(
             group_.all_gather(to_bytes(found), "the results of the RMA probe", [this] { serve(); })))
      all.push_back(std::move(probe));
  }
  return all;
}

}  // namespace capstan::launch::doctor
