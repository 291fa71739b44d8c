// liveness_word.cpp -- a robust mutex that its thread never unlocks.
#include "transport/memory/liveness_word.hpp"

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
  ~MutexAttributes() { (void)pthread_mutexattr_destroy(&raw); }  // fails only if they were not initialized
  MutexAttributes(const MutexAttributes&) = delete;
  MutexAttributes& operator=(const MutexAttributes&) = delete;

  pthread_mutexattr_t raw;
};

}  // namespace

LivenessWord::LivenessWord(std::byte* at) : mutex_(reinterpret_cast<pthread_mutex_t*>(at)) {
  // A mutex that is not robust would appear held even after the death of its thread.
  MutexAttributes attributes;
  check_pthread(pthread_mutexattr_setpshared(&attributes.raw, PTHREAD_PROCESS_SHARED),
                "pthread_mutexattr_setpshared");
  check_pthread(pthread_mutexattr_setrobust(&attributes.raw, PTHREAD_MUTEX_ROBUST),
                "pthread_mutexattr_setrobust");
  check_pthread(pthread_mutex_init(mutex_, &attributes.raw), "pthread_mutex_init");
  check_pthread(pthread_mutex_lock(mutex_), "pthread_mutex_lock");
}

LivenessWord::~LivenessWord() { pthread_mutex_unlock(mutex_); }

bool LivenessWord::alive(const std::byte* at) noexcept {
  thread_fence(std::memory_order_acquire);
#ifdef __GLIBC__
  // The futex word: the thread id of the holder; the kernel replaces it by FUTEX_OWNER_DIED when the thread
  // ends.
  const auto* mutex = reinterpret_cast<const pthread_mutex_t*>(at);
  return (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK) != 0;
#else
  (void)at;  // the endpoint reports the death some milliseconds later
  return true;
#endif
}

}  // namespace capstan::transport
