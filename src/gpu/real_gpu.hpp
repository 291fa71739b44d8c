// real_gpu.hpp -- the part of gpu.hpp and row_sort.hpp for real GPUs. Implemented by CUDA or, in a build
// without CUDA, by functions that throw. Handles are a cudaStream_t and a cudaEvent_t.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "gpu/gpu.hpp"
#include "gpu/stand_in.hpp"

namespace capstan::gpu::real {

int count() noexcept;
/// Returns true if CUDA has been initialized.
bool was_used() noexcept;
std::string why_none();
Info info(int device);

/// Selects `device` for the calling thread. Returns the device to restore(): the previous one if it has a
/// context, otherwise `device`, because selecting a device without a context allocates one (half a GB of its
/// memory).
int select(int device);
/// Ignores errors; the next call that needs the device reports them.
void restore(int device) noexcept;

void* create_stream(int device);
void destroy_stream(int device, void* stream) noexcept;
void wait_for_stream(void* stream);
void begin_after(void* stream, void* event);

void* create_event(int device, Timing timing);
void destroy_event(int device, void* event) noexcept;
void record(void* event, void* stream);
void wait_for_event(void* event);
bool done(void* event);
double milliseconds(void* begin, void* end);

/// Returns null if memory is exhausted.
std::byte* allocate(int device, std::size_t bytes);
/// Waits for all enqueued work of the device, then frees the memory.
void free(int device, std::byte* bytes) noexcept;
std::byte* allocate_pinned(std::size_t bytes);
/// Waits for all enqueued work of all devices, then frees the memory.
void free_pinned(std::byte* bytes) noexcept;
void copy(void* stream, void* to, const void* from, std::size_t bytes);
void fill_with_zeros(void* stream, void* memory, std::size_t bytes);

/// A cudaIpcMemHandle_t.
inline constexpr std::size_t kExportBytes = 64;
/// Returns nullopt if CUDA cannot export the memory, for example on platforms without CUDA IPC.
std::optional<std::array<std::byte, kExportBytes>> export_memory(int device, std::byte* memory) noexcept;
/// Returns null if the device cannot access the memory.
std::byte* import_memory(int device, const std::array<std::byte, kExportBytes>& exported);
void close_imported(int device, std::byte* memory) noexcept;

std::size_t scratch_bytes(const Stream& stream, std::uint32_t count);
void sort_rows(const Stream& stream, const Memory& scratch, std::uint32_t count, int bits,
               const std::uint32_t* rows, std::uint32_t* sorted_rows, const std::uint32_t* order_in,
               std::uint32_t* order_out);
void running_maximum(const Stream& stream, const Memory& scratch, std::uint32_t count,
                     const std::uint32_t* in, std::uint32_t* out);

}  // namespace capstan::gpu::real

namespace capstan::gpu {

/// Selects the stream's device for CUDA calls of the calling thread, until destruction. Stand-ins check that
/// their device is selected.
class DeviceGuard {
 public:
  explicit DeviceGuard(const Stream& stream)
      : is_stand_in_(stream.stand_in() != nullptr),
        before_(is_stand_in_ ? select_stand_in(stream.device()) : real::select(stream.device())) {}
  /// REQUIRES: the GPUs are not stand-ins.
  explicit DeviceGuard(int device) : is_stand_in_(false), before_(real::select(device)) {}
  ~DeviceGuard() {
    if (is_stand_in_) {
      (void)select_stand_in(before_);
    } else {
      real::restore(before_);
    }
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  bool is_stand_in_;
  int before_;
};

}  // namespace capstan::gpu
