// pulse.cpp -- the word, on a page that is shared across fork.
#include "cluster/pulse.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "capstan/error.hpp"

namespace capstan::cluster {
namespace {

using Word = std::atomic<std::int64_t>;  // nanoseconds of the clock; 0: no beat is to be expected
static_assert(Word::is_always_lock_free);
Word* word = nullptr;

}  // namespace

void Pulse::share() {
  void* page = mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw call_failed("mmap", std::strerror(errno));
  word = new (page) Word(0);
}

bool Pulse::watched() noexcept { return word != nullptr; }

void Pulse::beat() noexcept {
  if (word != nullptr) word->store(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void Pulse::rest() noexcept {
  if (word != nullptr) word->store(0);
}

std::optional<Pulse::Clock::time_point> Pulse::last() noexcept {
  const std::int64_t at = word != nullptr ? word->load() : 0;
  if (at == 0) return std::nullopt;
  return Clock::time_point(std::chrono::nanoseconds(at));
}

}  // namespace capstan::cluster
