// stand_in.cpp -- queues of work, and memory of which there is only so much.
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

/// Of CUDA it would be 0: a device for which nobody has asked is a mistake that works on GPU 0 alone.
thread_local int selected = -1;

/// As a GPU's allocator aligns.
constexpr std::align_val_t kAlignment{256};

struct StandIn {
  std::uint64_t used = 0;
  std::vector<std::weak_ptr<StandInQueue>> queues;
};

/// What use_stand_ins() has made; of the process, as a driver's devices are.
struct All {
  std::recursive_mutex mutex;
  std::uint64_t bytes_each = 0;
  std::vector<StandIn> gpus;
};
All& all() {
  static All made;
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

StandIn& stand_in(int device) { return all().gpus.at(static_cast<std::size_t>(device)); }

}  // namespace

void use_stand_ins(int gpus, std::uint64_t bytes_each) noexcept {
  const std::lock_guard lock(all().mutex);
  all().bytes_each = bytes_each;
  all().gpus.clear();
  all().gpus.resize(static_cast<std::size_t>(std::max(gpus, 0)));
}

int stand_ins() noexcept {
  const std::lock_guard lock(all().mutex);
  return static_cast<int>(all().gpus.size());
}
bool are_stand_ins() noexcept { return stand_ins() > 0; }

std::shared_ptr<StandInQueue> StandInQueue::of_device(int device) {
  const std::lock_guard lock(all().mutex);
  auto& queues = stand_in(device).queues;
  std::erase_if(queues, [](const auto& queue) { return queue.expired(); });
  auto made = std::make_shared<StandInQueue>();
  made->device_ = device;
  queues.push_back(made);
  return made;
}

void StandInQueue::put(std::function<void()> work) {
  const std::lock_guard lock(all().mutex);
  left_.push_back(std::move(work));
}

void StandInQueue::launch(std::function<void()> work) {
  CAPSTAN_ASSERT(selected == device_);
  put(std::move(work));
}

std::uint64_t StandInQueue::given() const {
  const std::lock_guard lock(all().mutex);
  return done_ + left_.size();
}

bool StandInQueue::step() {
  if (left_.empty()) return false;
  const std::function<void()> work = std::move(left_.front());
  left_.pop_front();
  ++done_;
  if (error_) return true;  // as on a GPU, nothing more is done
  try {
    work();
  } catch (...) {
    error_ = std::current_exception();
  }
  return true;
}

void StandInQueue::do_until(std::uint64_t count) {
  const std::lock_guard lock(all().mutex);
  while (done_ < count && step()) {
  }
  if (error_) std::rethrow_exception(error_);
}

bool StandInQueue::do_one(std::uint64_t count) {
  const std::lock_guard lock(all().mutex);
  if (done_ < count) step();
  return done_ >= count;
}

int select_stand_in(int device) noexcept { return std::exchange(selected, device); }

void finish_stand_in(int device) noexcept {
  const std::lock_guard lock(all().mutex);
  for (const auto& known : std::vector(stand_in(device).queues)) {
    const auto queue = known.lock();
    if (!queue) continue;
    try {
      queue->do_until(queue->given());
    } catch (...) {  // whoever waits for the stream is told
    }
  }
}

StandInAllocation allocate_of_stand_in(int device, std::size_t bytes, bool for_others) {
  const std::lock_guard lock(all().mutex);
  StandIn& of = stand_in(device);
  if (bytes > all().bytes_each - of.used) return {};
  StandInAllocation made;
  if (for_others) {
    made = map_new_file(bytes);
  } else {
    made.memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  }
  if (made.memory == nullptr) return {};
  of.used += bytes;
  // Whoever reads what nobody wrote is to see it: as numbers these bytes are not numbers.
  std::memset(made.memory, 0xFF, std::min<std::size_t>(bytes, std::size_t{1} << 20));
  return made;
}

void free_of_stand_in(int device, std::byte* memory, std::size_t bytes, int file) noexcept {
  const std::lock_guard lock(all().mutex);
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
  const std::lock_guard lock(all().mutex);
  return {all().bytes_each, stand_in(device).used};
}

}  // namespace capstan::gpu
