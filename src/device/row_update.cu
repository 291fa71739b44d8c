// row_update.cu -- Updater's memory, and Updater for float.
#include "device/row_update.cuh"

namespace capstan::device {

Updater::Updater(const Stream& stream, std::uint32_t table_rows, bool deterministic)
    : table_rows_(table_rows), deterministic_(deterministic) {
  if (deterministic) return;
  heads_ = Values<std::uint32_t>(stream.device(), table_rows);
  fill_with_zeros(stream, heads_.data(), table_rows * sizeof(std::uint32_t));
}

void Updater::make_room(const Stream& stream, std::uint32_t count) {
  if (owns_.size() >= count) return;
  stream.wait();  // an earlier update may be at the memory that goes
  const int device = stream.device();
  owns_ = {};
  owns_ = Values<std::uint8_t>(device, count);
  if (!deterministic_) return;
  for (Values<std::uint32_t>* one : {&order_in_, &order_, &sorted_rows_, &starts_in_, &starts_}) {
    *one = {};
    *one = Values<std::uint32_t>(device, count);
  }
  scratch_ = {};
  scratch_ = Memory(device, scratch_bytes(stream, count));
  each<4>(stream, CountBody{order_in_.data()}, count);
}

template void Updater::apply(const Stream&, const Optimizer&, const Update<float>&);

}  // namespace capstan::device
