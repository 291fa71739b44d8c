// stand_in.cpp -- work queues and limited memory of stand-ins.
#include "gpu/stand_in.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "gpu/gpu.hpp"

namespace capstan::gpu {
namespace {

/// CUDA's default is device 0, which hides a missing selection on hosts with one GPU.
thread_local int selected = -1;

/// Alignment of GPU allocators.
constexpr std::align_val_t kAlignment{256};

struct StandIn {
  std::uint64_t used = 0;
  std::vector<std::weak_ptr<StandInQueue>> queues;
};

/// The stand-ins of this process.
struct Registry {
  std::recursive_mutex mutex;
  std::uint64_t bytes_each = 0;
  std::vector<StandIn> gpus;
};
Registry& registry() {
  static Registry made;
  return made;
}

StandInAllocation map_new_file(std::size_t bytes) {
  const int file = ::memfd_create("capstan-stand-in", MFD_CLOEXEC);
  if (file < 0) return {};
  void* mapped = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0)
    mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) return {static_cast<std::byte*>(mapped), file};
  ::close(file);
  return {};
}

StandIn& stand_in(int device) { return registry().gpus.at(static_cast<std::size_t>(device)); }

}  // namespace

void use_stand_ins(int gpus, std::uint64_t bytes_each) noexcept {
  const std::lock_guard lock(registry().mutex);
  registry().bytes_each = bytes_each;
  registry().gpus.clear();
  registry().gpus.resize(static_cast<std::size_t>(std::max(gpus, 0)));
}

int stand_ins() noexcept {
  const std::lock_guard lock(registry().mutex);
  return static_cast<int>(registry().gpus.size());
}
bool are_stand_ins() noexcept { return stand_ins() > 0; }

std::shared_ptr<StandInQueue> StandInQueue::of_device(int device) {
  const std::lock_guard lock(registry().mutex);
  auto& queues = stand_in(device).queues;
  std::erase_if(queues, [](const auto& queue) { return queue.expired(); });
  auto made = std::make_shared<StandInQueue>();
  made->device_ = device;
  queues.push_back(made);
  return made;
}

void StandInQueue::enqueue(std::function<void()> work) {
  const std::lock_guard lock(registry().mutex);
  pending_.push_back(std::move(work));
}

void StandInQueue::launch(std::function<void()> work) {
  CAPSTAN_ASSERT(selected == device_);
  enqueue(std::move(work));
}

std::uint64_t StandInQueue::enqueued() const {
  const std::lock_guard lock(registry().mutex);
  return done_ + pending_.size();
}

bool StandInQueue::step() {
  if (pending_.empty()) return false;
  const std::function<void()> work = std::move(pending_.front());
  pending_.pop_front();
  ++done_;
  if (error_) return true;  // as on a GPU, no work runs after an error
  try {
    work();
  } catch (...) {
    error_ = std::current_exception();
  }
  return true;
}

void StandInQueue::run_until(std::uint64_t count) {
  const std::lock_guard lock(registry().mutex);
  while (done_ < count && step()) {
  }
  if (error_) std::rethrow_exception(error_);
}

bool StandInQueue::run_one(std::uint64_t count) {
  const std::lock_guard lock(registry().mutex);
  if (done_ < count) step();
  return done_ >= count;
}

int select_stand_in(int device) noexcept { return std::exchange(selected, device); }

void finish_stand_in(int device) noexcept {
  const std::lock_guard lock(registry().mutex);
  for (const auto& known : std::vector(stand_in(device).queues)) {
    const auto queue = known.lock();
    if (!queue) continue;
    try {
      queue->run_until(queue->enqueued());
    } catch (...) {  // a wait for the stream reports it
    }
  }
}

StandInAllocation allocate_of_stand_in(int device, std::size_t bytes, bool is_shared) {
  const std::lock_guard lock(registry().mutex);
  StandIn& owner = stand_in(device);
  if (bytes > registry().bytes_each - owner.used) return {};
  StandInAllocation made;
  if (is_shared) {
    made = map_new_file(bytes);
  } else {
    made.memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  }
  if (made.memory == nullptr) return {};
  owner.used += bytes;
  // Fills uninitialized memory with NaN, so that tests detect a read of it.
  std::memset(made.memory, 0xFF, std::min<std::size_t>(bytes, std::size_t{1} << 20));
  return made;
}

void free_of_stand_in(int device, std::byte* memory, std::size_t bytes, int file) noexcept {
  const std::lock_guard lock(registry().mutex);
  finish_stand_in(device);
  stand_in(device).used -= bytes;
  if (file < 0) return ::operator delete(memory, kAlignment);
  unmap_of_stand_in(memory, bytes);
  ::close(file);
}

std::byte* map_of_stand_in(std::int64_t process, int file, std::size_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return nullptr;
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  ::close(opened);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

void unmap_of_stand_in(std::byte* memory, std::size_t bytes) noexcept { (void)::munmap(memory, bytes); }

StandInMemory memory_of_stand_in(int device) {
  const std::lock_guard lock(registry().mutex);
  return {registry().bytes_each, stand_in(device).used};
}

}  // namespace capstan::gpu
