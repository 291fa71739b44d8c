// collected_push.cpp -- reserves staging memory for the largest possible launch, and returns the unused part.
#include "ps/update/collected_push.hpp"

#include <cstring>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace capstan::ps {

CollectedPush::CollectedPush(ShardGpu& gpu, std::uint64_t row_bytes, std::uint64_t capacity,
                             OnLaunch on_launch)
    : gpu_(gpu), row_bytes_(row_bytes), max_rows_(capacity), on_launch_(std::move(on_launch)) {}

CollectedPush::~CollectedPush() {
  try {
    if (capacity_ != 0) gpu_.launch_collected();
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
}

/// Two pushes are never concatenated: a row that both contain is updated twice, whereas a row that one push
/// repeats is updated once.
bool CollectedPush::continues(const Part& part) const {
  if (capacity_ == 0 || part.first) return false;
  if (part.rank != rank_ || part.step != launch_.step || part.rows.empty() == sparse_) return false;
  if (!sparse_ && part.first_row != launch_.first_row + launch_.count) return false;
  const bool from_host = part.host != nullptr;
  if (from_host != (host_ != nullptr)) return false;
  if (!from_host && part.device != launch_.gradient + launch_.count * row_bytes_) return false;
  return launch_.count + part.count <= capacity_;
}

void CollectedPush::begin(const Part& part) {
  gpu_.launch_collected();
  sparse_ = !part.rows.empty();
  // Deterministic results must not depend on arrival times.
  const std::uint64_t capacity = part.last || gpu_.deterministic() ? part.count : max_rows_;
  const std::uint64_t numbers = sparse_ ? ShardGpu::bytes_of_numbers(capacity) : 0;
  staging_ = gpu_.stage(numbers + (part.host != nullptr ? capacity * row_bytes_ : 0));
  host_ = part.host != nullptr ? staging_.host + numbers : nullptr;
  launch_ = {sparse_ ? staging_.device : nullptr, part.first_row, 0,
             part.host != nullptr ? staging_.device + numbers : part.device, part.step};
  rank_ = part.rank;
  capacity_ = capacity;
  gpu_.collect([this] { launch(); });
}

void CollectedPush::add(const Part& part) {
  if (!continues(part)) begin(part);
  if (sparse_)
    std::memcpy(staging_.host + launch_.count * sizeof(std::uint32_t), part.rows.data(),
                part.rows.size_bytes());
  if (host_ != nullptr) std::memcpy(host_ + launch_.count * row_bytes_, part.host, part.count * row_bytes_);
  launch_.count += part.count;
  if (part.last || launch_.count == capacity_) gpu_.launch_collected();
}

void CollectedPush::launch() {
  const std::uint64_t capacity = std::exchange(capacity_, 0);
  const std::uint64_t numbers = launch_.count * sizeof(std::uint32_t);
  const std::uint64_t bytes = launch_.count * row_bytes_;
  const gpu::Stream& stream = gpu_.stream();
  if (host_ == nullptr) {
    if (sparse_) {
      gpu_.return_unused(ShardGpu::bytes_of_numbers(capacity) - ShardGpu::bytes_of_numbers(launch_.count));
      gpu::copy(stream, staging_.device, staging_.host, numbers);
    }
  } else if (launch_.count == capacity) {
    gpu::copy(stream, staging_.device, staging_.host,
              static_cast<std::uint64_t>(host_ - staging_.host) + bytes);
  } else {
    gpu_.return_unused((capacity - launch_.count) * row_bytes_);
    if (sparse_) gpu::copy(stream, staging_.device, staging_.host, numbers);
    gpu::copy(stream, launch_.gradient, host_, bytes);
  }
  on_launch_(launch_);
}

}  // namespace capstan::ps
