// caching_scope.hpp -- CachingScope: whole reads of a variable that are made once and used again.
#pragma once

#include <memory>

#include "capstan/detail/export.hpp"

namespace capstan {

namespace strategy {
class ReadCache;
}

/// While it lives, the first whole read of each variable (`pull()` and `read()`) on this thread is kept, and
/// later ones return what it returned, without asking a ps. Assignments and pushes go through to the ps; what
/// was read before stays as it was until the scope ends. Parts of a variable (lookups, `pull(first_row,
/// out)`, `at`, slices, embeddings) are always read anew. Costs a copy of each variable that is read whole.
///
/// For the thread that opened it, which must also end it; one in a closure ends with the closure at the
/// latest.
class CAPSTAN_API CachingScope {
 public:
  /// Throws Error(invalid_argument) inside of another one of the same thread.
  CachingScope();
  ~CachingScope();
  CachingScope(const CachingScope&) = delete;
  CachingScope& operator=(const CachingScope&) = delete;

 private:
  std::unique_ptr<strategy::ReadCache> cache_;
};

}  // namespace capstan
