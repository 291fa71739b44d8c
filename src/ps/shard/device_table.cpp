// device_table.cpp -- pushes through pinned memory, operations without a GPU kernel, and copies.
#include "ps/shard/device_table.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/with_type.hpp"
#include "capstan/error.hpp"
#include "ps/shard/shard_rounding.hpp"
#include "ps/update/row_ops.hpp"

namespace capstan::ps {
namespace {

/// Returns the number of rows that fit in a piece together with their row numbers, at least 1.
std::uint64_t rows_per_piece(std::uint64_t row_bytes) {
  return std::max<std::uint64_t>(1, ShardGpu::kPieceBytes / (row_bytes + sizeof(std::uint32_t)));
}

}  // namespace

DeviceTable::DeviceTable(std::shared_ptr<ShardGpu> gpu, const protocol::CreateShard& description)
    : gpu_(std::move(gpu)),
      description_(description),
      optimizer_(description.optimizer),
      width_(protocol::width_of(description.shape)),
      copied_(gpu_->number()),
      updater_(gpu_->stream(), static_cast<std::uint32_t>(description.rows), gpu_->updates()),
      collected_(*gpu_, width_ * size_of(description.dtype),
                 rows_per_piece(width_ * size_of(description.dtype)),
                 [this](const CollectedPush::Launch& launch) {
                   update(launch.rows, launch.first_row, launch.count, launch.gradient, launch.step);
                 }) {
  const std::uint64_t elements = description.rows * width_;
  memory_.emplace_back(gpu_->number(), elements * size_of(description.dtype), gpu::Reach::host);
  const std::uint64_t slot_bytes = elements * size_of(protocol::slot_dtype(description.dtype));
  for (std::size_t slot = 0; slot < protocol::slots_of(description.optimizer.kind).size(); ++slot)
    memory_.emplace_back(gpu_->number(), slot_bytes);
  const std::uint64_t most = rows_per_piece(array(0).row_bytes);
  gpu_->reserve(
      std::max(ShardGpu::bytes_of_numbers(most) + most * array(0).row_bytes, ShardGpu::kPieceBytes));
  if (elements != 0) reserve(most);
}

void DeviceTable::reserve(std::uint64_t rows) {
  const bool narrow = size_of(protocol::slot_dtype(description_.dtype)) > size_of(description_.dtype);
  gpu_->updates()->reserve(gpu_->stream(), static_cast<std::uint32_t>(rows), narrow ? rows * width_ : 0);
}

DeviceTable::Array DeviceTable::array(std::size_t number) const {
  const DType dtype = number == 0 ? description_.dtype : protocol::slot_dtype(description_.dtype);
  return {memory_.at(number).data(), width_ * size_of(dtype)};
}

std::uint64_t DeviceTable::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const gpu::Memory& memory : memory_) sum += memory.size();
  return sum;
}

gpu::RowCopy DeviceTable::row_copy(std::size_t array, const std::byte* rows, std::uint64_t count,
                                   std::byte* outside) const {
  const Array of = this->array(array);
  return {of.data,
          static_cast<std::uint32_t>(description_.rows),
          of.row_bytes,
          reinterpret_cast<const std::uint32_t*>(rows),
          static_cast<std::uint32_t>(count),
          outside,
          gpu_->first_bad()};
}

void DeviceTable::apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                        const std::byte* values, const UpdateStep& step) {
  const std::uint64_t row_bytes = array(0).row_bytes;
  if (header.rows == 0 || row_bytes == 0) return;
  if (header.op == protocol::RowOp::gradient) return collect(header, rows, values, nullptr, step);
  const bool sparse = header.kind == protocol::PushKind::sparse;
  const std::uint64_t most = rows_per_piece(array(0).row_bytes);
  for (std::uint64_t first = 0; first < header.rows; first += most) {
    const std::uint64_t count = std::min<std::uint64_t>(most, header.rows - first);
    with_type(description_.dtype, [&]<class T>(std::type_identity<T>) {
      operate<T>(header.op, sparse ? rows.subspan(first, count) : rows, sparse ? 0 : header.first_row + first,
                 count, values + first * row_bytes);
    });
  }
}

void DeviceTable::apply_staged(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                               std::byte* gradient, const UpdateStep& step) {
  if (array(0).row_bytes != 0) collect(header, rows, nullptr, gradient, step);
}

void DeviceTable::collect(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                          const std::byte* host, std::byte* device, const UpdateStep& step) {
  const bool sparse = header.kind == protocol::PushKind::sparse;
  const std::uint64_t row_bytes = array(0).row_bytes;
  const std::uint64_t most = rows_per_piece(array(0).row_bytes);
  for (std::uint64_t first = 0; first < header.rows; first += most) {
    CollectedPush::Part part;
    part.rank = header.rank;
    part.step = step;
    part.count = std::min<std::uint64_t>(most, header.rows - first);
    part.first = header.first_part != 0 && first == 0;
    part.last = header.last_part != 0 && first + part.count == header.rows;
    if (sparse) part.rows = rows.subspan(first, part.count);
    if (!sparse) part.first_row = header.first_row + first;
    if (host != nullptr) part.host = host + first * row_bytes;
    if (device != nullptr) part.device = device + first * row_bytes;
    collected_.add(part);
  }
}

std::vector<std::byte> DeviceTable::key() const { return gpu::MappedMemory::key(gpu_->number(), memory_[0]); }

void DeviceTable::reserve_from_device(std::uint64_t rows) {
  reserve(rows);
  gpu_->reserve(ShardGpu::bytes_of_numbers(rows));
  const std::uint64_t bytes = rows * array(0).row_bytes;
  if (gradient_.size() >= bytes) return;
  gpu::Memory gradient(gpu_->number(), bytes);
  gpu_->settle();
  gradient_ = std::move(gradient);
}

void DeviceTable::apply_from_device(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                                    const std::byte* gradient, const gpu::Event& ready,
                                    const UpdateStep& step) {
  const std::uint64_t bytes = header.rows * array(0).row_bytes;
  if (bytes == 0) return;
  const gpu::Stream& stream = gpu_->stream();
  stream.begin_after(ready);
  gpu::copy(stream, gradient_.data(), gradient, bytes);
  copied_.record(stream);
  const bool sparse = header.kind == protocol::PushKind::sparse;
  const std::byte* device_rows = nullptr;
  if (sparse) {
    const ShardGpu::Staging staging = gpu_->stage(rows.size_bytes());
    std::memcpy(staging.host, rows.data(), rows.size_bytes());
    gpu::copy(stream, staging.device, staging.host, rows.size_bytes());
    device_rows = staging.device;
  }
  update(device_rows, sparse ? 0 : header.first_row, header.rows, gradient_.data(), step);
  copied_.wait();
}

void DeviceTable::update(const std::byte* rows, std::uint64_t first_row, std::uint64_t count,
                         std::byte* gradient, const UpdateStep& step) {
  with_type(description_.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, std::uint8_t>) {
      using Slot = Arithmetic<T>;
      gpu::Update<T> u;
      u.values = reinterpret_cast<T*>(memory_[0].data());
      u.slot0 = memory_.size() < 2 ? nullptr : reinterpret_cast<Slot*>(memory_[1].data());
      u.slot1 = memory_.size() < 3 ? nullptr : reinterpret_cast<Slot*>(memory_[2].data());
      u.width = width_;
      u.table_rows = static_cast<std::uint32_t>(description_.rows);
      u.rows = reinterpret_cast<const std::uint32_t*>(rows);
      u.first_row = static_cast<std::uint32_t>(first_row);
      u.count = static_cast<std::uint32_t>(count);
      u.gradient = reinterpret_cast<T*>(gradient);
      u.step = step.number;
      u.first_bad = gpu_->first_bad();
      u.rounding = rounding_of(description_, ++updates_);
      optimizer_.learning_rate = step.learning_rate;
      updater_.apply(gpu_->stream(), optimizer_, u);
    }
  });
}

template <class T>
void DeviceTable::operate(protocol::RowOp op, std::span<const std::uint32_t> rows, std::uint64_t first_row,
                          std::uint64_t count, const std::byte* values) {
  const gpu::Stream& stream = gpu_->stream();
  const bool sparse = !rows.empty();
  // A repeated row must change more than once, so all its occurrences refer to one position in the copy.
  std::vector<std::uint32_t> unique(rows.begin(), rows.end());
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  std::vector<std::uint32_t> positions;
  for (const std::uint32_t row : rows)
    positions.push_back(
        static_cast<std::uint32_t>(std::lower_bound(unique.begin(), unique.end(), row) - unique.begin()));

  const std::uint64_t row_bytes = array(0).row_bytes;
  const std::uint64_t numbers = ShardGpu::bytes_of_numbers(unique.size());
  const std::uint64_t bytes = (sparse ? unique.size() : count) * row_bytes;
  const ShardGpu::Staging staging = gpu_->stage(numbers + bytes);
  std::byte* const host = staging.host + numbers;
  std::byte* const device = staging.device + numbers;
  std::byte* const in_place = memory_[0].data() + first_row * row_bytes;
  const gpu::RowCopy copy = row_copy(0, staging.device, unique.size(), device);
  if (sparse) {
    std::memcpy(staging.host, unique.data(), unique.size() * sizeof(std::uint32_t));
    gpu::copy(stream, staging.device, staging.host, numbers);
  }
  if (op != protocol::RowOp::set) {  // `set` needs no old values
    if (sparse) gpu::gather(stream, copy);
    gpu::copy(stream, host, sparse ? device : in_place, bytes);
    stream.wait();
  }
  Update<T> u;
  u.values = reinterpret_cast<T*>(host);
  u.width = width_;
  u.rows = sparse ? positions.data() : nullptr;
  u.count = count;
  u.gradient = reinterpret_cast<const T*>(values);
  ps::apply(op, u);
  gpu::copy(stream, sparse ? device : in_place, host, bytes);
  if (sparse) gpu::scatter(stream, copy);
}

void DeviceTable::gather(std::size_t array, std::span<const std::uint32_t> rows,
                         std::byte* device_out) const {
  const std::uint64_t row_bytes = this->array(array).row_bytes;
  if (row_bytes == 0) return;
  constexpr std::uint64_t kMost = ShardGpu::kPieceBytes / sizeof(std::uint32_t);
  for (std::uint64_t first = 0; first < rows.size(); first += kMost) {
    const auto some = rows.subspan(first, std::min<std::uint64_t>(kMost, rows.size() - first));
    const ShardGpu::Staging staging = gpu_->stage(some.size_bytes());
    std::memcpy(staging.host, some.data(), some.size_bytes());
    gpu::copy(gpu_->stream(), staging.device, staging.host, some.size_bytes());
    gpu::gather(gpu_->stream(), row_copy(array, staging.device, some.size(), device_out + first * row_bytes));
  }
}

void DeviceTable::read_rows(std::size_t array, std::span<const std::uint32_t> rows, std::byte* out) const {
  const std::uint64_t row_bytes = this->array(array).row_bytes;
  if (row_bytes == 0) return;
  const std::uint64_t most = rows_per_piece(this->array(array).row_bytes);
  for (std::uint64_t first = 0; first < rows.size(); first += most) {
    const auto some = rows.subspan(first, std::min<std::uint64_t>(most, rows.size() - first));
    const std::uint64_t numbers = ShardGpu::bytes_of_numbers(some.size());
    const ShardGpu::Staging staging = gpu_->stage(numbers + some.size() * row_bytes);
    std::memcpy(staging.host, some.data(), some.size_bytes());
    gpu::copy(gpu_->stream(), staging.device, staging.host, some.size_bytes());
    gpu::gather(gpu_->stream(), row_copy(array, staging.device, some.size(), staging.device + numbers));
    gpu::copy(gpu_->stream(), out + first * row_bytes, staging.device + numbers, some.size() * row_bytes);
  }
  gpu_->settle();
}

void DeviceTable::read(std::size_t array, std::uint64_t first_byte, std::span<std::byte> out) const {
  gpu::copy(gpu_->stream(), out.data(), this->array(array).data + first_byte, out.size());
  gpu_->settle();
}

void DeviceTable::write_by(std::size_t array, std::uint64_t first, std::uint64_t bytes, std::uint64_t unit,
                           const Fill& read) {
  if (bytes == 0) return;
  const std::uint64_t most = std::max<std::uint64_t>(1, ShardGpu::kPieceBytes / unit) * unit;
  for (std::uint64_t done = 0; done < bytes; done += most) {
    const std::uint64_t count = std::min(most, bytes - done);
    const ShardGpu::Staging staging = gpu_->stage(count);
    read(first + done, count, staging.host);
    gpu::copy(gpu_->stream(), this->array(array).data + first + done, staging.host, count);
  }
}

void DeviceTable::fill(std::size_t array, const Fill& fill) {
  write_by(array, 0, memory_.at(array).size(), this->array(array).row_bytes, fill);
}

void DeviceTable::write(std::size_t array, std::uint64_t first, std::uint64_t bytes, const Fill& read) {
  write_by(array, first, bytes, 1, read);
}

void DeviceTable::fill_with_zeros() {
  for (const gpu::Memory& memory : memory_)
    gpu::fill_with_zeros(gpu_->stream(), memory.data(), memory.size());
}

void DeviceTable::change(
    std::size_t array,
    const std::function<void(std::uint64_t first_row, std::uint64_t rows, std::byte* data)>& change) {
  const Array of = this->array(array);
  if (of.row_bytes == 0) return;
  const std::uint64_t most = rows_per_piece(this->array(array).row_bytes);
  for (std::uint64_t first = 0; first < rows(); first += most) {
    const std::uint64_t count = std::min(most, rows() - first);
    const ShardGpu::Staging staging = gpu_->stage(count * of.row_bytes);
    gpu::copy(gpu_->stream(), staging.host, of.data + first * of.row_bytes, count * of.row_bytes);
    gpu_->stream().wait();
    change(first, count, staging.host);
    gpu::copy(gpu_->stream(), of.data + first * of.row_bytes, staging.host, count * of.row_bytes);
  }
}

}  // namespace capstan::ps
