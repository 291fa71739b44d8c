// device_snapshot.cpp -- copies rows to GPU memory or host memory, and reads the copy.
#include "ps/shard/device_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "base/first_touch.hpp"
#include "base/log.hpp"
#include "capstan/error.hpp"

namespace capstan::ps {
namespace {

/// Returns the bytes of GPU memory that a snapshot leaves free for larger pushes.
std::uint64_t reserved_bytes(const gpu::Info& gpu) {
  return std::min<std::uint64_t>(std::uint64_t{256} << 20, gpu.bytes / 16);
}

}  // namespace

DeviceSnapshot::DeviceSnapshot(const DeviceTable& table, const std::optional<TouchedRows>& touched)
    : gpu_(table.gpu().number()), rows_(table.rows()), made_(gpu_) {
  if (touched) listed_ = touched->list();
  std::uint64_t all = 0;
  for (std::size_t number = 0; number < table.arrays(); ++number) {
    arrays_.push_back({table.array(number).row_bytes});
    all += rows() * arrays_.back().row_bytes;
  }
  const gpu::Info gpu = gpu::info(gpu_);
  on_gpu_ = all + reserved_bytes(gpu) <= gpu.free_bytes && allocate_on_device();
  if (on_gpu_) {
    copy_to_device(table);
  } else {
    copy_to_host(table);
  }
  made_.record(table.gpu().stream());
}

DeviceSnapshot::~DeviceSnapshot() {
  try {
    made_.wait();
    if (stream_) stream_->wait();
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
}

bool DeviceSnapshot::allocate_on_device() {
  for (Array& array : arrays_) {
    auto memory = gpu::Memory::try_allocate(gpu_, rows() * array.row_bytes);
    if (!memory) {
      for (Array& allocated : arrays_) allocated.device = {};
      return false;
    }
    array.device = *std::move(memory);
  }
  return true;
}

void DeviceSnapshot::copy_to_device(const DeviceTable& table) {
  for (std::size_t number = 0; number < arrays_.size(); ++number) {
    const Array& array = arrays_[number];
    if (listed_) {
      table.gather(number, *listed_, array.device.data());
    } else {
      gpu::copy(table.gpu().stream(), array.device.data(), table.array(number).data, array.device.size());
    }
  }
}

void DeviceSnapshot::copy_to_host(const DeviceTable& table) {
  for (std::size_t number = 0; number < arrays_.size(); ++number) {
    Array& array = arrays_[number];
    const std::uint64_t bytes = rows() * array.row_bytes;
    (void)check_memory_left(bytes);  // the kernel would kill a ps that uses more memory than the host has
    array.host.reset(new (std::nothrow) std::byte[bytes]);
    if (array.host == nullptr) {
      throw Error(Code::resource_exhausted,
                  fmt::format("cannot take a snapshot of a shard: no memory for {} bytes, neither on GPU {} "
                              "nor on this host; leave as much memory free as the largest shard takes",
                              bytes, gpu_));
    }
    if (listed_) {
      table.read_rows(number, *listed_, array.host.get());
    } else {
      table.read(number, 0, {array.host.get(), bytes});
    }
  }
}

void DeviceSnapshot::copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out,
                          std::mutex&) {
  const Array& from = arrays_.at(array);
  const std::uint64_t begin = first * from.row_bytes;
  const std::uint64_t bytes = count * from.row_bytes;
  if (bytes == 0) return;
  if (!on_gpu_) {
    std::memcpy(out, from.host.get() + begin, bytes);
    return;
  }
  if (!stream_) {
    stream_ = std::make_unique<gpu::Stream>(gpu_);
    stream_->begin_after(made_);
  }
  if (piece_.size() == 0) piece_ = gpu::PinnedMemory(ShardGpu::kPieceBytes);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t some = std::min<std::uint64_t>(piece_.size(), bytes - done);
    gpu::copy(*stream_, piece_.data(), from.device.data() + begin + done, some);
    stream_->wait();
    std::memcpy(out + done, piece_.data(), some);
    done += some;
  }
}

}  // namespace capstan::ps
