// membership.cpp -- the table of members and the state machine.
#include "cluster/membership/membership.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/assert.hpp"

namespace capstan::cluster {
namespace {

constexpr bool may_return(Role role) noexcept {
  return role == Role::ps || role == Role::spare || role == Role::coordinator;
}

constexpr bool may_follow(MemberState before, MemberState now, Role role) noexcept {
  switch (before) {
    case MemberState::absent:
      return now == MemberState::joining || now == MemberState::alive || now == MemberState::dead ||
             now == MemberState::fenced;
    case MemberState::joining:
      return now == MemberState::alive || now == MemberState::dead || now == MemberState::fenced;
    case MemberState::alive:
      return now == MemberState::suspected || now == MemberState::dead || now == MemberState::fenced ||
             now == MemberState::left;
    case MemberState::suspected:
      return now == MemberState::alive || now == MemberState::dead || now == MemberState::fenced;
    case MemberState::dead:
      return may_return(role) && (now == MemberState::alive || now == MemberState::fenced);
    case MemberState::fenced:
      return may_return(role) && now == MemberState::alive;
    case MemberState::left:
      return false;
  }
  return false;
}

constexpr std::size_t at(Role role) noexcept { return static_cast<std::size_t>(role); }
constexpr std::size_t at(int rank) noexcept { return static_cast<std::size_t>(rank); }

}  // namespace

std::string_view to_string(MemberState state) noexcept {
  switch (state) {
    case MemberState::absent:
      return "absent";
    case MemberState::joining:
      return "joining";
    case MemberState::alive:
      return "alive";
    case MemberState::suspected:
      return "suspected";
    case MemberState::dead:
      return "dead";
    case MemberState::fenced:
      return "fenced";
    case MemberState::left:
      return "left";
  }
  return "unknown";
}

Membership::Membership(Table table, const std::optional<Member>& self)
    : table_(std::move(table)), states_(at(table_.capacity())), statuses_(at(table_.capacity())) {
  for (const Member& member : table_.members) ++count_[at(member.role)];
  const std::lock_guard lock(mutex_);
  begin();
  if (!self || at(self->rank) < table_.members.size()) return;
  note_worker(*self);
  store(self->rank, MemberState::alive, {});
}

void Membership::begin() {
  for (const Member& member : table_.members) {
    if (member.role == Role::worker) {
      workers_.resize(std::max(workers_.size(), at(member.index) + 1), -1);
      workers_[at(member.index)] = member.rank;
    }
    store(member.rank, MemberState::alive, {});
  }
}

void Membership::begin_again(Table table) {
  const std::lock_guard lock(mutex_);
  CAPSTAN_ASSERT(at(table.capacity()) == states_.size());
  table_ = std::move(table);
  joined_.clear();
  moved_.clear();
  any_moved_ = false;
  workers_.clear();
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    states_[rank] = MemberState::absent;
    statuses_[rank] = {};
  }
  for (auto& alive : alive_) alive = 0;
  begin();
}

Table Membership::table_now() const {
  const std::lock_guard lock(mutex_);
  Table table = table_;
  for (const auto& [rank, processes] : moved_) {
    Member& member = table.members.at(at(rank));
    member.host = processes.back().member.host;
    member.pid = processes.back().member.pid;
  }
  return table;
}

bool Membership::single_host() const noexcept {
  return std::all_of(table_.members.begin(), table_.members.end(),
                     [this](const Member& member) { return member.host == table_.members.front().host; });
}

const Member* Membership::find(int rank) const {
  if (rank < 0) return nullptr;
  if (at(rank) < table_.members.size()) {
    const auto moved = moved_.find(rank);
    return moved == moved_.end() ? &table_.members[at(rank)] : &moved->second.back().member;
  }
  const auto joined = joined_.find(rank);
  return joined == joined_.end() ? nullptr : &joined->second;
}

const Member& Membership::member(int rank) const {
  if (at(rank) < table_.members.size() && !any_moved_.load(std::memory_order_acquire))
    return table_.members[at(rank)];
  const std::lock_guard lock(mutex_);
  const Member* found = find(rank);
  if (found == nullptr) throw std::out_of_range("no member has rank " + std::to_string(rank));
  return *found;
}

const Member& Membership::member(Role role, int index) const {
  const auto found = std::find_if(table_.members.begin(), table_.members.end(), [&](const Member& member) {
    return member.role == role && member.index == index;
  });
  CAPSTAN_ASSERT(found != table_.members.end());
  return member(found->rank);
}

std::string Membership::name_of(int rank) const {
  const std::lock_guard lock(mutex_);
  const Member* found = find(rank);
  return found != nullptr ? found->name() : "rank " + std::to_string(rank);
}

bool Membership::knows(int rank) const {
  const std::lock_guard lock(mutex_);
  return find(rank) != nullptr;
}

std::vector<int> Membership::worker_ranks() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> ranks = workers_;
  std::erase(ranks, -1);  // a late worker that this rank does not know yet
  return ranks;
}

void Membership::note_worker(const Member& member) {
  CAPSTAN_ASSERT(at(member.rank) >= table_.members.size() && member.rank < table_.capacity());
  const bool is_new = joined_.emplace(member.rank, member).second;
  CAPSTAN_ASSERT(is_new);
  if (member.role != Role::worker) return;
  workers_.resize(std::max(workers_.size(), at(member.index) + 1), -1);
  workers_[at(member.index)] = member.rank;
}

void Membership::add(Member member, MemberState state) {
  {
    const std::lock_guard lock(mutex_);
    note_worker(member);
  }
  set(member.rank, state);
}

/// Two threads announce the processes of a ps, each in chronological order, possibly with gaps. A thread that
/// lags behind may announce a process that the other thread has already replaced; the later process stays.
void Membership::note_process(const Process& announced) {
  std::deque<Process>& processes = moved_[announced.member.rank];
  for (auto known = processes.rbegin(); known != processes.rend(); ++known) {
    if (known->member.host == announced.member.host && known->member.pid == announced.member.pid) {
      known->control |= announced.control;
      known->data |= announced.data;
      return;
    }
    // This thread has announced `known` before, so `announced` is the later process.
    if ((announced.control && known->control) || (announced.data && known->data)) break;
  }
  processes.push_back(announced);
  any_moved_.store(true, std::memory_order_release);
}

// Each address is read by one thread only, and by table_now().
void Membership::move(const Member& member, Address address) {
  const std::lock_guard lock(mutex_);
  Member& of_start = table_.members.at(at(member.rank));
  if (address == Address::control) {
    of_start.control_address = member.control_address;
  } else {
    of_start.data_address = member.data_address;
  }
  if (member.role == Role::coordinator) {  // it restarts on the same host
    of_start.pid = member.pid;
  } else {
    note_process({member, address == Address::control, address == Address::data});
  }
}

void Membership::become(const Member& ps) {
  const std::lock_guard lock(mutex_);
  table_.rank = ps.rank;
  Member& of_start = table_.members.at(at(ps.rank));
  of_start.control_address = ps.control_address;
  of_start.data_address = ps.data_address;
  note_process({ps, true, true});
}

Membership::Status Membership::status(int rank) const {
  const std::lock_guard lock(mutex_);
  return statuses_.at(at(rank));
}

bool Membership::worker_is_alive(int index) const {
  const std::lock_guard lock(mutex_);
  return index >= 0 && at(index) < workers_.size() && workers_[at(index)] >= 0 &&
         is_alive(workers_[at(index)]);
}

bool Membership::has_lost_worker(int index) const {
  const std::lock_guard lock(mutex_);
  for (int rank = 0; rank < table_.capacity(); ++rank) {
    const Member* member = is_lost(rank) ? find(rank) : nullptr;
    if (member != nullptr && member->role == Role::worker && member->index == index) return true;
  }
  return false;
}

void Membership::store(int rank, MemberState state, std::string cause) {
  statuses_[at(rank)] = {state, Clock::now(), std::move(cause)};
  const MemberState before = states_[at(rank)].exchange(state, std::memory_order_acq_rel);
  const Member* member = find(rank);
  if (member == nullptr) return;
  if (before == MemberState::alive) --alive_[at(member->role)];
  if (state == MemberState::alive) ++alive_[at(member->role)];
}

bool Membership::set(int rank, MemberState state, std::string cause) {
  const Change change{rank, this->state(rank), state};
  if (at(rank) >= states_.size()) return false;
  {
    const std::lock_guard lock(mutex_);
    const Member* member = find(rank);
    if (!may_follow(change.before, state, member != nullptr ? member->role : Role::worker)) return false;
    store(rank, state, std::move(cause));
  }
  if (observer_) observer_(change);
  return true;
}

}  // namespace capstan::cluster
