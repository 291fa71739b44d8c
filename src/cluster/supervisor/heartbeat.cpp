// heartbeat.cpp -- atomic words in an unnamed file that is shared across fork and exec.
#include "cluster/supervisor/heartbeat.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "capstan/error.hpp"

namespace capstan::cluster {
namespace {

struct Words {
  std::atomic<std::int64_t> beat{0};     // time of the last heartbeat in ns; 0: none is expected
  std::atomic<std::int64_t> silence{0};  // maximum time until the next heartbeat in ms
  std::atomic<bool> last{false};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
FileDescriptor words_file;
Words* words = nullptr;

void* map_words(int file) {
  void* const page = mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) throw call_failed("mmap", std::strerror(errno));
  return page;
}

}  // namespace

void Heartbeat::share() {
  FileDescriptor file(memfd_create(kFileName, MFD_CLOEXEC));
  if (!file) throw call_failed("memfd_create", std::strerror(errno));
  if (ftruncate(file.get(), sizeof(Words)) != 0) {
    throw call_failed("ftruncate of a memfd", std::strerror(errno));
  }
  words = new (map_words(file.get())) Words;
  words_file = std::move(file);
}

int Heartbeat::descriptor() noexcept { return words_file.get(); }

void Heartbeat::adopt(FileDescriptor file) {
  words = static_cast<Words*>(map_words(file.get()));
  words_file = std::move(file);
}

bool Heartbeat::watched() noexcept { return words != nullptr; }

void Heartbeat::beat(std::chrono::milliseconds most_silence) noexcept {
  if (most_silence.count() == 0) return pause();
  if (words == nullptr) return;
  words->silence.store(most_silence.count());
  words->beat.store(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void Heartbeat::pause() noexcept {
  if (words != nullptr) words->beat.store(0);
}

void Heartbeat::forbid_restart() noexcept {
  if (words != nullptr) words->last.store(true);
}

bool Heartbeat::restart_forbidden() noexcept { return words != nullptr && words->last.load(); }

std::optional<Heartbeat::Beat> Heartbeat::last() noexcept {
  const std::int64_t at = words != nullptr ? words->beat.load() : 0;
  if (at == 0) return std::nullopt;
  return Beat{Clock::time_point(std::chrono::nanoseconds(at)),
              std::chrono::milliseconds(words->silence.load())};
}

}  // namespace capstan::cluster
