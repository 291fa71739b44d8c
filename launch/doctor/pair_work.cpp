// pair_work.cpp -- connecting, and serving those that connect.
#include "launch/doctor/pair_work.hpp"

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

constexpr std::uint64_t kWritten = 0x646f63746f722121;  // any number that fresh memory does not hold
/// A rank that serves keeps awake for so long after the last message: what it answers is being timed.
constexpr std::chrono::microseconds kAwake{300};

/// What every rank gave, of several each.
template <class T>
std::vector<T> all_of(const std::vector<Blob>& blobs) {
  std::vector<T> all;
  for (const Blob& blob : blobs) {
    for (T& one : from_bytes<std::vector<T>>(blob)) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

PairWork::PairWork(Gathering& gathering) : gathering_(gathering) {
  own_.host = cluster::host_name();
  for (const Blob& blob : gathering_.all_gather(to_bytes(own_.host), "the hosts of all ranks"))
    hosts_.push_back(from_bytes<std::string>(blob));
  rounds_ = in_rounds(standing_for_all(hosts_));
  try {
    open();
  } catch (const Error& error) {
    own_.failure = error.what();
  }
  for (const Blob& blob : gathering_.all_gather(to_bytes(own_), "all ranks to open UCX"))
    contacts_.push_back(from_bytes<Contact>(blob));
}

PairWork::~PairWork() { region_.reset(); }

void PairWork::open() {
  auto fabric = std::make_unique<transport::UcxFabric>();
  fabric->set_rank(gathering_.rank());
  bool measured = false;
  for (const auto& round : rounds_) {
    for (const Pair& pair : round) measured = measured || pair.second == gathering_.rank();
  }
  region_ = fabric->allocate(measured ? kMeasuredBytes : 4096);
  std::memcpy(region_->memory().data(), &kWritten, sizeof kWritten);
  const transport::RegionKey key = region_->key();
  own_.address = fabric->address();
  own_.region_address = key.address;
  own_.region_length = key.length;
  own_.region_key = key.packed;
  // A connection to whoever asks can only be made outside of a handler; a ping is answered at once.
  fabric->on_message(kQuestion,
                     [this](const transport::Message& message) { to_answer_.push_back(message.from); });
  fabric->on_message(kPing, [this](const transport::Message& message) {
    if (const auto found = peers_.find(message.from); found != peers_.end()) found->second->send(kAnswer, {});
  });
  fabric->on_message(kAnswer, [this](const transport::Message& message) { ++answers_[message.from]; });
  fabric->on_message(kPiece, [](const transport::Message&) {});
  fabric_ = fabric.release();
}

void PairWork::serve() {
  if (fabric_ == nullptr) {
    std::this_thread::sleep_for(kAwake);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (fabric_->progress() > 0) {
    last_event_ = now;
  } else if (now - last_event_ > kAwake) {
    fabric_->wait(std::chrono::milliseconds(1));
  }
  for (const int rank : std::exchange(to_answer_, {})) peer(rank).send(kAnswer, {});
}

transport::Peer& PairWork::peer(int rank) {
  const auto found = peers_.find(rank);
  if (found != peers_.end()) return *found->second;
  const Contact& contact = contacts_.at(static_cast<std::size_t>(rank));
  transport::Peer& made =
      fabric_->connect(rank, fmt::format("rank {} on {}", rank, contact.host), contact.address);
  peers_.emplace(rank, &made);
  return made;
}

/// Connected, in both directions: it has answered. Throws Error.
transport::Peer& PairWork::reach(int rank) {
  if (fabric_ == nullptr) throw Error(Code::internal, own_.failure);
  const Contact& contact = contacts_.at(static_cast<std::size_t>(rank));
  if (!contact.failure.empty()) throw Error(Code::unavailable, contact.failure);
  transport::Peer& there = peer(rank);
  int& answers = answers_[rank];
  const int before = answers;
  there.send(kQuestion, {});
  const auto deadline = transport::deadline_in(kPairTimeout);
  while (answers == before && !there.failed() && std::chrono::steady_clock::now() < deadline) serve();
  if (answers == before)
    throw Error(Code::unavailable, fmt::format("{} does not answer by UCX", there.name()));
  return there;
}

Link PairWork::link_to(int rank) const {
  return {gathering_.rank(), rank, own_.host, hosts_.at(static_cast<std::size_t>(rank))};
}

std::unique_ptr<transport::Window> PairWork::window_onto(int rank, transport::WindowPath path) {
  const Contact& contact = contacts_.at(static_cast<std::size_t>(rank));
  return peer(rank).open_window({contact.region_address, contact.region_length, contact.region_key}, path);
}

Link PairWork::try_link(int rank) {
  Link link = link_to(rank);
  try {
    transport::Peer& there = reach(rank);
    link.transports = there.transports();
    link.hardware_rma = there.has_hardware_rma();
    const auto window = window_onto(rank, transport::WindowPath::automatic);
    link.mapped = window->mapped() != nullptr;
    std::uint64_t word = kWritten;
    if (link.mapped) std::memcpy(&word, window->mapped(), sizeof word);
    if (word != kWritten) link.failure = "its memory is mapped, and is not its own";
  } catch (const Error& error) {
    link.failure = error.what();
  }
  return link;
}

std::vector<Link> PairWork::links() {
  std::vector<Link> mine;
  for (const int rank : connects_to(gathering_.rank(), gathering_.size())) mine.push_back(try_link(rank));
  return all_of<Link>(gathering_.all_gather(to_bytes(mine), "all ranks to connect", [this] { serve(); }));
}

std::vector<Speed> PairWork::speeds() {
  std::vector<Speed> all;
  for (const auto& round : rounds_) {
    std::vector<Speed> mine;
    for (const Pair& pair : round) {
      if (pair.first == gathering_.rank()) mine.push_back(measure(pair.second));
    }
    for (Speed& speed :
         all_of<Speed>(gathering_.all_gather(to_bytes(mine), "latency and bandwidth", [this] { serve(); })))
      all.push_back(std::move(speed));
  }
  return all;
}

std::vector<Probe> PairWork::probes() {
  std::vector<Probe> all;
  for (const auto& round : rounds_) {
    std::optional<int> target;
    for (const Pair& pair : round) {
      if (pair.first == gathering_.rank()) target = pair.second;
    }
    Probe mine;
    if (target) mine.link = try_link(*target);
    gathering_.meet("connections for the probe of RMA", [this] { serve(); });
    // From here on nobody serves, and all are here before the first put.
    gathering_.meet("the probe of RMA to begin");
    if (target && mine.link.failure.empty()) probe(*target, mine);
    gathering_.meet("the probe of RMA");
    std::vector<Probe> found;
    if (target) found.push_back(std::move(mine));
    for (Probe& probe : all_of<Probe>(
             gathering_.all_gather(to_bytes(found), "the probe of RMA to end", [this] { serve(); })))
      all.push_back(std::move(probe));
  }
  return all;
}

}  // namespace capstan::launch::doctor
