// loop.cpp -- inboxes under a mutex, windows that are the memory itself. Destroying a fabric counts as the
// death of its rank: peers notice it as they would with UCX.
#include "transport/loop/loop.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include "base/assert.hpp"
#include "base/fence.hpp"
#include "capstan/error.hpp"
#include "transport/memory/reserved_memory.hpp"

namespace capstan::transport {
namespace {

struct QueuedMessage {
  std::uint16_t type;
  int from;
  std::vector<std::byte> header;
  std::vector<std::byte> payload;
};

struct Inbox {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<QueuedMessage> messages;
  bool woken = false;
  std::atomic<bool> open{true};
};

struct FreeAligned {
  void operator()(std::byte* p) const noexcept { std::free(p); }
};
using Memory = std::shared_ptr<std::byte>;

Memory allocate_zeroed(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  auto* raw = static_cast<std::byte*>(std::aligned_alloc(kPage, rounded));
  if (raw == nullptr) {
    throw Error(Code::resource_exhausted, "cannot allocate a region of " + std::to_string(bytes) + " bytes");
  }
  std::memset(raw, 0, rounded);
  return {raw, FreeAligned{}};
}

class LoopRegion : public Region {
 public:
  LoopRegion(std::size_t bytes, Memory memory) : bytes_(bytes), memory_(std::move(memory)) {}
  std::span<std::byte> memory() noexcept override { return {memory_.get(), bytes_}; }

  /// The key contains the address of a shared_ptr in this process; the window copies the shared_ptr.
  RegionKey key() const override {
    RegionKey key{reinterpret_cast<std::uint64_t>(memory_.get()), bytes_, {}};
    const auto* self = &memory_;
    key.packed.resize(sizeof self);
    std::memcpy(key.packed.data(), &self, sizeof self);
    return key;
  }

 private:
  std::size_t bytes_;
  Memory memory_;
};

class LoopWindow : public Window {
 public:
  LoopWindow(const RegionKey& key, WindowPath path) {
    const Memory* owner = nullptr;
    CAPSTAN_ASSERT(key.packed.size() == sizeof owner);
    std::memcpy(&owner, key.packed.data(), sizeof owner);
    memory_ = *owner;
    length_ = key.length;
    if (path == WindowPath::rma) return;
    mapped_ = memory_.get();
    shared_ = memory_;
  }
  void put(std::uint64_t offset, Bytes data) override {
    require_inside(offset, data.size());
    if (is_word(offset, data.size())) {
      std::uint64_t value = 0;
      std::memcpy(&value, data.data(), sizeof value);
      word(offset).store(value, std::memory_order_release);
    } else if (!data.empty()) {
      std::memcpy(memory_.get() + offset, data.data(), data.size());
    }
  }
  void get(std::uint64_t offset, std::span<std::byte> out, Deadline) override {
    require_inside(offset, out.size());
    if (is_word(offset, out.size())) {
      const std::uint64_t value = word(offset).load(std::memory_order_acquire);
      std::memcpy(out.data(), &value, sizeof value);
    } else if (!out.empty()) {
      std::memcpy(out.data(), memory_.get() + offset, out.size());
    }
  }
  void fence() override { thread_fence(std::memory_order_release); }
  void flush(Deadline) override {}

 private:
  std::atomic_ref<std::uint64_t> word(std::uint64_t offset) const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(memory_.get() + offset));
  }
  Memory memory_;
};

class LoopPeer : public Peer {
 public:
  LoopPeer(int rank, std::string name, std::shared_ptr<Inbox> inbox, const Fabric& self)
      : Peer(rank, std::move(name)), inbox_(std::move(inbox)), self_(self) {}

  void send(std::uint16_t type, Bytes header, Bytes payload) override {
    if (failed_) return;
    const std::lock_guard lock(inbox_->mutex);
    inbox_->messages.push_back(
        {type, self_.rank(), {header.begin(), header.end()}, {payload.begin(), payload.end()}});
    inbox_->arrived.notify_all();
  }
  void send_in_place(std::uint16_t type, Bytes header, Bytes payload, std::uint32_t&) override {
    send(type, header, payload);  // copies, so nothing is in flight
  }
  std::unique_ptr<Window> open_window(const RegionKey& key, WindowPath path) override {
    return std::make_unique<LoopWindow>(key, path);
  }
  std::string transports() const override { return "loop"; }
  bool has_hardware_rma() const override { return false; }
  void disconnect() noexcept override { failed_ = true; }

  /// Returns true if the other end was destroyed and this was not reported yet.
  bool has_ended() const { return !failed_ && !inbox_->open.load(std::memory_order_acquire); }
  void set_failed() { failed_ = true; }

 private:
  std::shared_ptr<Inbox> inbox_;
  const Fabric& self_;
};

}  // namespace

struct LoopHub::State {
  std::mutex mutex;
  std::vector<std::shared_ptr<Inbox>> inboxes;

  std::shared_ptr<Inbox> at(std::uint64_t slot) {
    const std::lock_guard lock(mutex);
    CAPSTAN_ASSERT(slot < inboxes.size());
    return inboxes[slot];
  }
};

namespace {

class LoopFabric : public Fabric {
 public:
  explicit LoopFabric(std::shared_ptr<LoopHub::State> hub)
      : hub_(std::move(hub)), inbox_(std::make_shared<Inbox>()) {
    const std::lock_guard lock(hub_->mutex);
    slot_ = hub_->inboxes.size();
    hub_->inboxes.push_back(inbox_);
  }
  ~LoopFabric() override {
    inbox_->open.store(false, std::memory_order_release);
    const std::lock_guard lock(hub_->mutex);
    for (const auto& other : hub_->inboxes) {
      if (other == inbox_) continue;
      const std::lock_guard other_lock(other->mutex);
      other->woken = true;
      other->arrived.notify_all();
    }
  }
  std::vector<std::byte> address() const override {
    std::vector<std::byte> out(sizeof slot_);
    std::memcpy(out.data(), &slot_, sizeof slot_);
    return out;
  }
  Peer& connect(int rank, const std::string& name, Bytes address) override {
    std::uint64_t slot = 0;
    CAPSTAN_ASSERT(address.size() == sizeof slot);
    std::memcpy(&slot, address.data(), sizeof slot);
    return *peers_.emplace_back(std::make_unique<LoopPeer>(rank, name, hub_->at(slot), *this));
  }
  std::unique_ptr<Region> allocate(std::size_t bytes) override {
    return std::make_unique<LoopRegion>(bytes, allocate_zeroed(bytes));
  }
  std::unique_ptr<Region> reserve(std::size_t bytes) override {
    return std::make_unique<LoopRegion>(bytes, reserve_memory(bytes));
  }

  unsigned progress() override {
    const unsigned kept = deliver_unhandled();
    // Dead peers are found before the inbox is emptied, so that their last messages precede their failure.
    std::vector<LoopPeer*> ended;
    for (const auto& peer : peers_) {
      if (peer->has_ended()) ended.push_back(peer.get());
    }
    std::deque<QueuedMessage> arrived;
    {
      const std::lock_guard lock(inbox_->mutex);
      arrived.swap(inbox_->messages);
    }
    for (const QueuedMessage& message : arrived)
      deliver({message.type, message.from, message.header, message.payload});
    for (LoopPeer* peer : ended) {
      peer->set_failed();
      report_failure(*peer);
    }
    return kept + static_cast<unsigned>(arrived.size());
  }
  bool arm() override { return true; }
  void sleep(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(inbox_->mutex);
    inbox_->arrived.wait_for(lock, timeout, [this] { return inbox_->woken || !inbox_->messages.empty(); });
    inbox_->woken = false;
  }
  void wake() noexcept override {
    const std::lock_guard lock(inbox_->mutex);
    inbox_->woken = true;
    inbox_->arrived.notify_all();
  }

 private:
  std::shared_ptr<LoopHub::State> hub_;
  std::shared_ptr<Inbox> inbox_;
  std::uint64_t slot_ = 0;
  std::vector<std::unique_ptr<LoopPeer>> peers_;
};

}  // namespace

LoopHub::LoopHub() : state_(std::make_shared<State>()) {}
LoopHub::~LoopHub() = default;
std::unique_ptr<Fabric> LoopHub::open() { return std::make_unique<LoopFabric>(state_); }

}  // namespace capstan::transport
