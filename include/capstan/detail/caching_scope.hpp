// caching_scope.hpp -- CachingScope: caches reads of complete variables.
#pragma once

#include <memory>

#include "capstan/detail/export.hpp"

namespace capstan {

namespace strategy {
class ReadCache;
}

/// Caches, on the thread that opened it, the first complete read (`pull()` or `read()`) of each variable;
/// later complete reads return the cached values without contacting a ps. Assignments and pushes go to the
/// ps, but the cached values stay unchanged until the scope ends. Partial reads (lookups, `pull(first_row,
/// out)`, `at`, slices, embeddings) are never cached. Costs one copy of each variable that is read
/// completely.
///
/// Used by one thread, which must also destroy it. A scope opened in a closure must end within the closure.
class CAPSTAN_API CachingScope {
 public:
  /// Throws Error(invalid_argument) if this thread already has an open CachingScope.
  CachingScope();
  ~CachingScope();
  CachingScope(const CachingScope&) = delete;
  CachingScope& operator=(const CachingScope&) = delete;

 private:
  std::unique_ptr<strategy::ReadCache> cache_;
};

}  // namespace capstan
