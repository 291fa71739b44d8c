// store_process.hpp -- a process of a ps and its persistent memory, from which a later process recovers.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::ps {

class StoreProcess {
 public:
  static constexpr std::uint64_t kRanks = 3;
  explicit StoreProcess(const std::shared_ptr<transport::PersistentMemory>& memory)
      : persistent_(memory, fabric_, kRanks, 1 << 16),
        board_(persistent_.board(protocol::BoardLayout(kRanks).bytes())),
        store_(
            fabric_, 1 << 20, 0, [](std::uint32_t, std::uint64_t) {}, [](std::uint32_t, std::uint64_t) {},
            &persistent_),
        undone_(persistent_.uncommitted_entry().has_value()) {}
  Store& store() { return store_; }
  /// Returns true if the previous process was killed in the middle of an entry.
  bool undone() const { return undone_; }
  /// Applies an entry as one of rank 1. The next process undoes it unless `commit` is set.
  void apply(std::vector<std::byte> entry, bool commit) {
    protocol::PushHeader header;
    std::memcpy(&header, entry.data(), sizeof header);
    header.rank = 1;
    std::memcpy(entry.data(), &header, sizeof header);
    apply_entry(store_, entry);
    if (commit) persistent_.set_applied(1, persistent_.applied(1) + header.bytes);
  }

 private:
  transport::UcxFabric fabric_;
  PersistentState persistent_;
  std::unique_ptr<transport::Region> board_;
  Store store_;
  bool undone_;
};

}  // namespace capstan::ps
