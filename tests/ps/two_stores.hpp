// two_stores.hpp -- the same shards in host and GPU memory, with the same pushes to both.
#pragma once

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "ps/push_entry.hpp"
#include "ps/shard/store.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {

class OneStore {
 public:
  explicit OneStore(ShardMemory memory, bool deterministic = false) : memory_(memory) {
    store_.device()->configure([] { return 0; }, deterministic);
  }
  void create(protocol::CreateShard request, bool restored = false) {
    request.memory = memory_;
    (void)store_.create(request, restored);
  }
  template <class T>
  std::vector<T> values(std::uint32_t variable) {
    const auto view = store_.view(variable, 0);
    std::vector<std::uint32_t> rows(view.rows);
    std::iota(rows.begin(), rows.end(), 0U);
    std::vector<T> out(view.rows * view.row_bytes / sizeof(T));
    store_.gather(view, rows, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  Store& store() { return store_; }

 private:
  ShardMemory memory_;
  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  Store store_{*fabric_, 1 << 20, 0};
};

struct TwoStores {
  explicit TwoStores(bool deterministic = false) : gpu(ShardMemory::device, deterministic) {}
  void create(const protocol::CreateShard& request) {
    host.create(request);
    gpu.create(request);
  }
  void push(const std::vector<std::byte>& entry) {
    apply_entry(host.store(), entry);
    // Overwrites the entry once it has been applied, as a ring does.
    std::vector<std::byte> passing = entry;
    apply_entry(gpu.store(), passing);
    std::fill(passing.begin(), passing.end(), std::byte{0xFF});
  }

  OneStore host{ShardMemory::host};
  OneStore gpu;
};

/// Returns the description of a variable of one shard.
template <class T>
protocol::CreateShard one_shard(std::uint32_t id, std::vector<std::uint64_t> shape,
                                const Optimizer& optimizer, const Initializer& initializer = {}) {
  return {id, 0, "v" + std::to_string(id), dtype_of<T>, shape, 0, shape[0], optimizer, initializer};
}

}  // namespace capstan::ps
