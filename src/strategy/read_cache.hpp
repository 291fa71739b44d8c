// read_cache.hpp -- values that a CachingScope holds.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "strategy/context.hpp"

namespace capstan::strategy {

class ReadCache {
 public:
  /// Returns the calling thread's cache, or null.
  static ReadCache* current() noexcept;
  static void set_current(ReadCache* cache) noexcept;

  /// Copies the variable's values into `out`; the first call reads them with `read(out)`.
  template <class Read>
  void read(const std::shared_ptr<const BoundVariable>& variable, void* out, std::size_t bytes,
            const Read& read) {
    const auto found = values_.find(variable);
    if (found != values_.end()) {
      std::memcpy(out, found->second.data(), bytes);
      return;
    }
    read(out);
    const auto* first = static_cast<const std::byte*>(out);
    values_.emplace(variable, std::vector<std::byte>(first, first + bytes));
  }

 private:
  std::map<std::shared_ptr<const BoundVariable>, std::vector<std::byte>> values_;
};

}  // namespace capstan::strategy
