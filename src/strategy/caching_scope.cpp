// caching_scope.cpp -- the read cache of the calling thread.
#include "capstan/detail/caching_scope.hpp"

#include "base/assert.hpp"
#include "capstan/error.hpp"
#include "strategy/read_cache.hpp"

namespace capstan {
namespace strategy {
namespace {

thread_local ReadCache* current_cache = nullptr;

}  // namespace

ReadCache* ReadCache::current() noexcept { return current_cache; }
void ReadCache::set_current(ReadCache* cache) noexcept { current_cache = cache; }

}  // namespace strategy

CachingScope::CachingScope() : cache_(std::make_unique<strategy::ReadCache>()) {
  if (strategy::ReadCache::current() != nullptr) {
    throw Error(Code::invalid_argument,
                "a CachingScope is opened inside of another one: reads are cached already, and a second one "
                "would end too early; open it after the first has ended");
  }
  strategy::ReadCache::set_current(cache_.get());
}

CachingScope::~CachingScope() {
  CAPSTAN_ASSERT(strategy::ReadCache::current() == cache_.get());  // ended by the thread that opened it
  strategy::ReadCache::set_current(nullptr);
}

}  // namespace capstan
