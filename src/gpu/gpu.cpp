// gpu.cpp -- gpu.hpp, implemented by real GPUs or stand-ins.
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
/// Granularity in which cudaMalloc obtains memory from the driver. CUDA IPC maps these blocks completely, so
/// exported memory must not share a block with other allocations.
constexpr std::size_t kIpcBlock = std::size_t{2} << 20;

Error out_of_memory(int device, std::size_t bytes) {
  const Info there = info(device);
  const auto gib = [](std::uint64_t count) { return static_cast<double>(count) / kGib; };
  return Error(
      Code::resource_exhausted,
      fmt::format(
          "GPU {} ({}): cannot allocate {:.2f} GiB, as {:.2f} of {:.2f} GiB are free; use fewer rows, "
          "16-bit values, or a table in host memory",
          device, there.name, gib(bytes), gib(there.free_bytes), gib(there.bytes)));
}

/// Identifies this process across containers, in which process ids may repeat. A forked child has the token
/// of its parent.
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
              fmt::format("GPU {}: no such device; this process can use {} GPUs", device, count()));
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
  return {"stand-in on the host", "none", 8, 0, memory.bytes, memory.bytes - memory.used};
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
  if (stand_in_) return stand_in_->run_until(stand_in_->enqueued());
  const DeviceGuard guard(*this);
  real::wait_for_stream(handle_.get());
}

struct Event::Recording {
  std::shared_ptr<StandInQueue> queue;
  std::uint64_t position = 0;  // number of tasks in the queue, including the event's
  std::optional<std::chrono::steady_clock::time_point> passed;
};

Event::Event(int device, Timing timing) : device_(device), timing_(timing) {
  check_device(device);
  if (!are_stand_ins()) handle_ = {real::create_event(device, timing), Destroy{device}};
}

void Event::Destroy::operator()(void* handle) const noexcept { real::destroy_event(device, handle); }

void Event::record(const Stream& stream) {
  const DeviceGuard guard(stream);
  if (stream.stand_in() == nullptr) return real::record(handle_.get(), stream.handle());
  auto made = std::make_shared<Recording>();
  made->queue = stream.stand_in_;
  stream.stand_in()->enqueue([recording = made.get(), alive = std::weak_ptr(made)] {
    if (!alive.expired()) recording->passed = std::chrono::steady_clock::now();
  });
  made->position = stream.stand_in()->enqueued();
  recording_ = std::move(made);
}

void Event::wait() const {
  if (handle_) {
    const DeviceGuard guard(device_);
    return real::wait_for_event(handle_.get());
  }
  if (recording_) recording_->queue->run_until(recording_->position);
}

bool Event::done() const {
  if (handle_) {
    const DeviceGuard guard(device_);
    return real::done(handle_.get());
  }
  return !recording_ || recording_->queue->run_one(recording_->position);
}

double Event::milliseconds_since(const Event& earlier) const {
  CAPSTAN_ASSERT(timing_ == Timing::yes && earlier.timing_ == Timing::yes);
  earlier.wait();
  wait();
  if (handle_) {
    const DeviceGuard guard(device_);
    return real::milliseconds(earlier.handle_.get(), handle_.get());
  }
  const std::chrono::duration<double, std::milli> passed = *recording_->passed - *earlier.recording_->passed;
  return passed.count();
}

void Stream::begin_after(const Event& event) const {
  const DeviceGuard guard(*this);
  if (stand_in_ == nullptr) return real::begin_after(handle_.get(), event.handle_.get());
  if (event.recording_) {
    stand_in_->enqueue([recording = event.recording_] { recording->queue->run_until(recording->position); });
  }
}

Memory::Memory(int device, std::size_t bytes, Reach reach) {
  auto made = try_allocate(device, bytes, reach);
  if (!made) throw out_of_memory(device, bytes);
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

/// Exchanged between processes of one build.
struct MappedMemory::Key {
  std::int64_t process = 0;
  std::uint64_t token = 0;  // process_token() of the process
  std::int32_t stand_in = 0;
  std::int32_t file = -1;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::int64_t is_exported = 0;  // by CUDA IPC; otherwise only its own process can use the memory
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
      bytes_ = {reinterpret_cast<std::byte*>(key.address), Unmap{Unmap::How::none, device, 0}};
    return;
  }
  if (are_stand_ins()) {
    if (key.process == ::getpid())
      return;  // a process of another container, whose files are not visible here
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
                fmt::format("cannot allocate {} bytes of pinned host memory", bytes));
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
  const DeviceGuard guard(stream);
  if (stream.stand_in() == nullptr) return real::copy(stream.handle(), to, from, bytes);
  stream.stand_in()->launch([to, from, bytes] { std::memcpy(to, from, bytes); });
}

void fill_with_zeros(const Stream& stream, void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  const DeviceGuard guard(stream);
  if (stream.stand_in() == nullptr) return real::fill_with_zeros(stream.handle(), memory, bytes);
  stream.stand_in()->launch([memory, bytes] { std::memset(memory, 0, bytes); });
}

}  // namespace capstan::gpu
