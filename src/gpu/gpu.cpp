// gpu.cpp -- gpu.hpp: by a GPU, or by its stand-in.
#include "gpu/gpu.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "gpu/real_gpu.hpp"
#include "gpu/stand_in.hpp"

namespace capstan::gpu {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
/// What cudaMalloc takes from the driver at once, and other processes map as a whole: smaller allocations
/// share it, and whoever maps one would reach the others.
constexpr std::size_t kIpcBlock = std::size_t{2} << 20;

Error no_room(int device, std::size_t bytes) {
  const Info there = info(device);
  const auto gib = [](std::uint64_t count) { return static_cast<double>(count) / kGib; };
  return Error(
      Code::resource_exhausted,
      fmt::format("GPU {} ({}) has no room for {:.2f} GiB ({:.2f} of {:.2f} GiB are free): use fewer rows, "
                  "or 16-bit values, or leave the table in the memory of a host",
                  device, there.name, gib(bytes), gib(there.free_bytes), gib(there.bytes)));
}

/// Another one's in another container, where a process may have the same number. A child has its parent's.
std::uint64_t process_token() {
  static const std::uint64_t made = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return made;
}

void check_device(int device) {
  if (device >= 0 && device < count()) return;
  throw Error(Code::out_of_range,
              fmt::format("there is no GPU {}: this process may use {}", device, count()));
}

}  // namespace

int count() noexcept { return are_stand_ins() ? stand_ins() : real::count(); }
std::string why_none() { return are_stand_ins() ? "" : real::why_none(); }
bool was_used() noexcept { return real::was_used(); }

Info info(int device) {
  if (count() == 0) throw Error(Code::unimplemented, why_none());
  check_device(device);
  if (!are_stand_ins()) return real::info(device);
  const StandInMemory memory = memory_of_stand_in(device);
  return {"a stand-in on the host", "none", 8, 0, memory.bytes, memory.bytes - memory.used};
}

Stream::Stream(int device) : device_(device) {
  if (count() == 0) throw Error(Code::unimplemented, why_none());
  check_device(device);
  if (are_stand_ins()) {
    stand_in_ = StandInQueue::of_device(device);
  } else {
    handle_ = {real::create_stream(device), Destroy{device}};
  }
}

void Stream::Destroy::operator()(void* handle) const noexcept { real::destroy_stream(device, handle); }

void Stream::wait() const {
  if (stand_in_) return stand_in_->do_until(stand_in_->given());
  const On on(*this);
  real::wait_for_stream(handle_.get());
}

struct Event::Moment {
  std::shared_ptr<StandInQueue> queue;
  std::uint64_t given = 0;  // to the queue, with the event
  std::optional<std::chrono::steady_clock::time_point> passed;
};

Event::Event(int device, Timing timing) : device_(device), timing_(timing) {
  check_device(device);
  if (!are_stand_ins()) handle_ = {real::create_event(device, timing), Destroy{device}};
}

void Event::Destroy::operator()(void* handle) const noexcept { real::destroy_event(device, handle); }

void Event::record(const Stream& stream) {
  const On on(stream);
  if (stream.stand_in() == nullptr) return real::record(handle_.get(), stream.handle());
  auto made = std::make_shared<Moment>();
  made->queue = stream.stand_in_;
  stream.stand_in()->put([of = made.get(), keep = std::weak_ptr(made)] {
    if (!keep.expired()) of->passed = std::chrono::steady_clock::now();
  });
  made->given = stream.stand_in()->given();
  moment_ = std::move(made);
}

void Event::wait() const {
  if (handle_) {
    const On on(device_);
    return real::wait_for_event(handle_.get());
  }
  if (moment_) moment_->queue->do_until(moment_->given);
}

bool Event::done() const {
  if (handle_) {
    const On on(device_);
    return real::done(handle_.get());
  }
  return !moment_ || moment_->queue->do_one(moment_->given);
}

double Event::milliseconds_since(const Event& earlier) const {
  CAPSTAN_ASSERT(timing_ == Timing::yes && earlier.timing_ == Timing::yes);
  earlier.wait();
  wait();
  if (handle_) {
    const On on(device_);
    return real::milliseconds(earlier.handle_.get(), handle_.get());
  }
  const std::chrono::duration<double, std::milli> passed = *moment_->passed - *earlier.moment_->passed;
  return passed.count();
}

void Stream::begin_after(const Event& event) const {
  const On on(*this);
  if (stand_in_ == nullptr) return real::begin_after(handle_.get(), event.handle_.get());
  if (event.moment_) {
    stand_in_->put([moment = event.moment_] { moment->queue->do_until(moment->given); });
  }
}

Memory::Memory(int device, std::size_t bytes, Reach reach) {
  auto made = try_allocate(device, bytes, reach);
  if (!made) throw no_room(device, bytes);
  *this = std::move(*made);
}

std::optional<Memory> Memory::try_allocate(int device, std::size_t bytes, Reach reach) {
  check_device(device);
  Memory memory;
  if (bytes == 0) return memory;
  const bool stand_in = are_stand_ins();
  const std::size_t taken = reach == Reach::host ? (bytes + kIpcBlock - 1) / kIpcBlock * kIpcBlock : bytes;
  const auto made = stand_in ? allocate_of_stand_in(device, bytes, reach == Reach::host)
                             : StandInAllocation{real::allocate(device, taken), -1};
  if (made.memory == nullptr) return std::nullopt;
  memory.bytes_ = {made.memory, Free{device, stand_in, bytes, made.file}};
  memory.size_ = bytes;
  return memory;
}

/// Sent between processes of one build.
struct MappedMemory::Key {
  std::int64_t process = 0;
  std::uint64_t token = 0;  // of the process
  std::int32_t stand_in = 0;
  std::int32_t file = -1;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::int64_t is_exported = 0;  // by CUDA; what is not can be used by its process alone
  std::array<char, 32> bus{};
  std::array<std::byte, real::kExportBytes> exported{};
};

std::vector<std::byte> MappedMemory::key(int device, const Memory& memory) {
  Key key;
  key.process = ::getpid();
  key.token = process_token();
  key.stand_in = are_stand_ins() ? 1 : 0;
  key.file = memory.bytes_.get_deleter().file;
  key.address = reinterpret_cast<std::uintptr_t>(memory.data());
  key.size = memory.size();
  const std::string bus = are_stand_ins() ? std::to_string(device) : real::info(device).bus;
  std::copy_n(bus.begin(), std::min(bus.size(), key.bus.size() - 1), key.bus.begin());
  if (!are_stand_ins() && key.size > 0) {
    const auto exported = real::export_memory(device, memory.data());
    key.is_exported = exported ? 1 : 0;
    if (exported) key.exported = *exported;
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(&key);
  return {bytes, bytes + sizeof key};
}

MappedMemory::MappedMemory(int device, std::span<const std::byte> packed) {
  Key key;
  if (packed.size() != sizeof key) return;
  std::memcpy(&key, packed.data(), sizeof key);
  if (key.size == 0 || (key.stand_in != 0) != are_stand_ins()) return;
  const std::string own = are_stand_ins() ? std::to_string(device) : real::info(device).bus;
  if (key.process == ::getpid() && key.token == process_token()) {
    if (own == key.bus.data())
      bytes_ = {reinterpret_cast<std::byte*>(key.address), Unmap{Unmap::How::not_at_all, device, 0}};
    return;
  }
  if (are_stand_ins()) {
    if (key.process == ::getpid()) return;  // of another container, whose files are not to be seen here
    bytes_ = {map_of_stand_in(key.process, key.file, key.size),
              Unmap{Unmap::How::stand_in, device, key.size}};
  } else if (key.is_exported != 0) {
    bytes_ = {real::import_memory(device, key.exported), Unmap{Unmap::How::gpu, device, key.size}};
  }
}

void MappedMemory::Unmap::operator()(std::byte* bytes) const noexcept {
  if (how == How::stand_in) unmap_of_stand_in(bytes, size);
  if (how == How::gpu) real::close_imported(device, bytes);
}

void Memory::Free::operator()(std::byte* bytes) const noexcept {
  if (stand_in) return free_of_stand_in(device, bytes, size, file);
  real::free(device, bytes);
}

PinnedMemory::PinnedMemory(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  std::byte* const made =
      are_stand_ins() ? new (std::nothrow) std::byte[bytes] : real::allocate_pinned(bytes);
  if (made == nullptr) {
    throw Error(Code::resource_exhausted,
                fmt::format("this host has no {} bytes that could be pinned for a GPU", bytes));
  }
  bytes_ = {made, Free{are_stand_ins()}};
}

void PinnedMemory::Free::operator()(std::byte* bytes) const noexcept {
  if (!stand_in) return real::free_pinned(bytes);
  for (int gpu = 0; gpu < stand_ins(); ++gpu) finish_stand_in(gpu);
  delete[] bytes;
}

void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const On on(stream);
  if (stream.stand_in() == nullptr) return real::copy(stream.handle(), to, from, bytes);
  stream.stand_in()->launch([to, from, bytes] { std::memcpy(to, from, bytes); });
}

void fill_with_zeros(const Stream& stream, void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  const On on(stream);
  if (stream.stand_in() == nullptr) return real::fill_with_zeros(stream.handle(), memory, bytes);
  stream.stand_in()->launch([memory, bytes] { std::memset(memory, 0, bytes); });
}

}  // namespace capstan::gpu
