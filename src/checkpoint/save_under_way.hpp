// save_under_way.hpp -- which ps have written their parts of the checkpoint that is being saved.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "transport/fabric.hpp"

namespace capstan::checkpoint {

/// One save at a time. Any thread.
class SaveUnderWay {
 public:
  /// `last`: the number of the last save that another process may have begun.
  explicit SaveUnderWay(std::uint64_t last) : number_(last) {}

  /// A number for a new save by so many ps. What is still said of earlier ones is not heard. REQUIRES: none
  /// is under way, but for one that its caller begins anew.
  std::uint64_t begin(int ps_count);
  /// One has begun, and nobody has taken its parts or given it up.
  bool under_way() const;
  /// Handler of kPartSaved.
  void take(const transport::Message& message);
  /// It is gone, and what it was writing with it.
  void lose(int ps, const std::string& name);
  /// Nobody waits for it any more.
  void give_up();

  /// All have written, or there is an error.
  bool settled() const;
  /// All have written to the fast level, where the coordinator sees it, or one will not.
  bool fast_settled() const;
  /// What they have written there; nothing unless it is all, or when all have written to the end as well.
  std::optional<std::vector<io::PartReport>> fast_parts() const;
  /// Indices of those that have not.
  std::vector<int> missing() const;
  /// Ends it. Throws the first error. REQUIRES: settled().
  std::vector<io::PartReport> take_parts();

 private:
  mutable std::mutex mutex_;
  std::uint64_t number_;
  bool under_way_ = false;
  int ps_count_ = 0;
  std::map<int, std::vector<io::PartReport>> written_;  // by ps
  std::map<int, std::vector<io::PartReport>> fast_;
  std::set<int> ended_;  // ps that have nothing more to say
  std::optional<Error> error_;
};

}  // namespace capstan::checkpoint
