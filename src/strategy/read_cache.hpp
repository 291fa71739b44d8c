// read_cache.hpp -- what the calling thread's CachingScope keeps.
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
  /// The calling thread's, or null.
  static ReadCache* current() noexcept;
  static void set_current(ReadCache* cache) noexcept;

  /// Copies the variable's values into `out`; `read(out)` gets them the first time.
  template <class Read>
  void read(const std::shared_ptr<const BoundVariable>& variable, void* out, std::size_t bytes,
            const Read& read) {
    const auto found = kept_.find(variable);
    if (found != kept_.end()) {
      std::memcpy(out, found->second.data(), bytes);
      return;
    }
    read(out);
    const auto* first = static_cast<const std::byte*>(out);
    kept_.emplace(variable, std::vector<std::byte>(first, first + bytes));
  }

 private:
  std::map<std::shared_ptr<const BoundVariable>, std::vector<std::byte>> kept_;
};

}  // namespace capstan::strategy
