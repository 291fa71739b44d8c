// row_update.cu -- the scratch memory of updates, and Updater for float.
#include <array>
#include <utility>

#include "gpu/row_update.cuh"

namespace capstan::gpu {

void UpdateScratch::reserve(const Stream& stream, std::uint32_t rows, std::uint64_t narrow_elements) {
  const int device = stream.device();
  if (widened_.size() < narrow_elements) {
    Values<float> widened(device, narrow_elements);
    stream.wait();  // an earlier update may still use the old memory
    widened_ = std::move(widened);
  }
  if (owns_.size() >= rows) return;
  Values<std::uint8_t> owns(device, rows);
  std::array<Values<std::uint32_t>, 5> numbers;
  Memory scratch;
  if (deterministic_) {
    for (Values<std::uint32_t>& one : numbers) one = Values<std::uint32_t>(device, rows);
    scratch = Memory(device, scratch_bytes(stream, rows));
  }
  stream.wait();
  owns_ = std::move(owns);
  if (!deterministic_) return;
  order_in_ = std::move(numbers[0]);
  order_ = std::move(numbers[1]);
  sorted_rows_ = std::move(numbers[2]);
  starts_in_ = std::move(numbers[3]);
  starts_ = std::move(numbers[4]);
  scratch_ = std::move(scratch);
  const DeviceGuard guard(stream);
  each<4>(stream, IotaBody{order_in_.data()}, rows);
}

Updater::Updater(const Stream& stream, std::uint32_t table_rows, bool deterministic)
    : Updater(stream, table_rows, std::make_shared<UpdateScratch>(deterministic)) {}

Updater::Updater(const Stream& stream, std::uint32_t table_rows, std::shared_ptr<UpdateScratch> scratch)
    : table_rows_(table_rows), scratch_(std::move(scratch)) {
  if (scratch_->deterministic()) return;
  heads_ = Values<std::uint32_t>(stream.device(), table_rows);
  fill_with_zeros(stream, heads_.data(), table_rows * sizeof(std::uint32_t));
}

template void Updater::apply(const Stream&, const Optimizer&, const Update<float>&);

}  // namespace capstan::gpu
