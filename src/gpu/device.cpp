// device.cpp -- the public interface (capstan/device.hpp), implemented by gpu.hpp.
#include "capstan/device.hpp"

#include <fmt/format.h>

#include "gpu/gpu.hpp"

namespace capstan {

int device_count() noexcept { return gpu::count(); }

DeviceStream::DeviceStream(int device) : implementation_(std::make_unique<gpu::Stream>(device)) {}
DeviceStream::~DeviceStream() = default;
DeviceStream::DeviceStream(DeviceStream&&) noexcept = default;
DeviceStream& DeviceStream::operator=(DeviceStream&&) noexcept = default;
int DeviceStream::device() const noexcept { return implementation_->device(); }
void DeviceStream::wait() const { implementation_->wait(); }
void* DeviceStream::cuda_stream() const noexcept { return implementation_->handle(); }

namespace detail {

DeviceBytes::DeviceBytes(int device, std::size_t bytes)
    : memory_(std::make_unique<gpu::Memory>(device, bytes)) {}
DeviceBytes::~DeviceBytes() = default;
DeviceBytes::DeviceBytes(DeviceBytes&&) noexcept = default;
DeviceBytes& DeviceBytes::operator=(DeviceBytes&&) noexcept = default;
std::byte* DeviceBytes::data() const noexcept { return memory_ ? memory_->data() : nullptr; }

void copy_bytes(const DeviceStream& stream, void* to, const void* from, std::size_t bytes) {
  gpu::copy(stream.implementation(), to, from, bytes);
}

void require_same_size(std::size_t to, std::size_t from) {
  if (to == from) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("cannot copy {} elements into an array of {} elements; expected equal sizes", from, to));
}

}  // namespace detail
}  // namespace capstan
