// life_word.cpp -- a robust mutex that is locked for life.
#include "transport/memory/life_word.hpp"

#include <linux/futex.h>

#include <atomic>
#include <cstring>

#include "base/fence.hpp"
#include "capstan/error.hpp"

namespace capstan::transport {
namespace {

void check_pthread(int code, const char* call, Where where = Where::here()) {
  if (code != 0) throw call_failed(call, std::strerror(code), where);
}

struct MutexAttributes {
  MutexAttributes() { check_pthread(pthread_mutexattr_init(&raw), "pthread_mutexattr_init"); }
  ~MutexAttributes() { (void)pthread_mutexattr_destroy(&raw); }  // fails only where they were never made
  MutexAttributes(const MutexAttributes&) = delete;
  MutexAttributes& operator=(const MutexAttributes&) = delete;

  pthread_mutexattr_t raw;
};

}  // namespace

LifeWord::LifeWord(std::byte* at) : mutex_(reinterpret_cast<pthread_mutex_t*>(at)) {
  // One that is not robust would say for ever that its holder lives.
  MutexAttributes attributes;
  check_pthread(pthread_mutexattr_setpshared(&attributes.raw, PTHREAD_PROCESS_SHARED),
                "pthread_mutexattr_setpshared");
  check_pthread(pthread_mutexattr_setrobust(&attributes.raw, PTHREAD_MUTEX_ROBUST),
                "pthread_mutexattr_setrobust");
  check_pthread(pthread_mutex_init(mutex_, &attributes.raw), "pthread_mutex_init");
  check_pthread(pthread_mutex_lock(mutex_), "pthread_mutex_lock");
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
