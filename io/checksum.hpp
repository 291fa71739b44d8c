// checksum.hpp -- incremental XXH3-64.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace capstan::io {

class Checksum {
 public:
  Checksum();

  void add(const void* data, std::size_t bytes);
  /// Returns the hash of all bytes added so far: 16 lower-case hex digits, most significant digit first.
  std::string hex() const;

 private:
  struct FreeState {
    void operator()(XXH3_state_s* state) const noexcept;
  };
  std::unique_ptr<XXH3_state_s, FreeState> state_;
};

std::string checksum_of(std::string_view bytes);

}  // namespace capstan::io
