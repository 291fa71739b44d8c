// life_word.cpp -- a robust mutex that is locked for life.
#include "transport/life_word.hpp"

#include <linux/futex.h>

#include <atomic>
#include <cstring>

#include "base/fence.hpp"
#include "capstan/error.hpp"

namespace capstan::transport {
namespace {

void check(int code, const char* call) {
  if (code != 0) throw call_failed(call, std::strerror(code));
}

}  // namespace

LifeWord::LifeWord(std::byte* at) : mutex_(reinterpret_cast<pthread_mutex_t*>(at)) {
  pthread_mutexattr_t attributes;
  check(pthread_mutexattr_init(&attributes), "pthread_mutexattr_init");
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  const int made = pthread_mutex_init(mutex_, &attributes);
  pthread_mutexattr_destroy(&attributes);
  check(made, "pthread_mutex_init");
  check(pthread_mutex_lock(mutex_), "pthread_mutex_lock");
}

LifeWord::~LifeWord() { pthread_mutex_unlock(mutex_); }

bool LifeWord::alive(const std::byte* at) noexcept {
  thread_fence(std::memory_order_acquire);
#ifdef __GLIBC__
  // The futex word itself: the holder's thread id, and FUTEX_OWNER_DIED in its place once the kernel has
  // buried it.
  const auto* mutex = reinterpret_cast<const pthread_mutex_t*>(at);
  return (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK) != 0;
#else
  (void)at;  // the endpoint tells, some milliseconds later
  return true;
#endif
}

}  // namespace capstan::transport
