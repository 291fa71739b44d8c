// real_gpu.hpp -- what gpu.hpp and row_sort.hpp do with GPUs that are no stand-ins: by CUDA, or in a build
// without it refused. Handles are a cudaStream_t and a cudaEvent_t.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/gpu.hpp"

namespace capstan::device::real {

int count() noexcept;
std::string why_none();
Info info(int device);

/// The device that was selected before.
int select(int device);

void* create_stream(int device);
void destroy_stream(void* stream) noexcept;
void wait_for_stream(void* stream);
void begin_after(void* stream, void* event);

void* create_event(int device);
void destroy_event(void* event) noexcept;
void record(void* event, void* stream);
void wait_for_event(void* event);
bool done(void* event);
double milliseconds(void* begin, void* end);

/// Null where there is no room.
std::byte* allocate(int device, std::size_t bytes);
void free(std::byte* bytes) noexcept;
std::byte* allocate_pinned(std::size_t bytes);
void free_pinned(std::byte* bytes) noexcept;
void copy(void* stream, void* to, const void* from, std::size_t bytes);
void fill_with_zeros(void* stream, void* memory, std::size_t bytes);

/// A cudaIpcMemHandle_t.
inline constexpr std::size_t kExportBytes = 64;
std::array<std::byte, kExportBytes> export_memory(std::byte* memory);
/// Null where the device does not reach it.
std::byte* import_memory(int device, const std::array<std::byte, kExportBytes>& exported);
void close_imported(std::byte* memory) noexcept;

std::size_t scratch_bytes(const Stream& stream, std::uint32_t count);
void sort_rows(const Stream& stream, const Memory& scratch, std::uint32_t count, int bits,
               const std::uint32_t* rows, std::uint32_t* sorted_rows, const std::uint32_t* order_in,
               std::uint32_t* order);
void running_maximum(const Stream& stream, const Memory& scratch, std::uint32_t count,
                     const std::uint32_t* in, std::uint32_t* out);

}  // namespace capstan::device::real

namespace capstan::device {

/// CUDA's calls of this thread go to the stream's device while it lives.
class On {
 public:
  explicit On(const Stream& stream) : On(stream.stand_in() != nullptr ? -1 : stream.device()) {}
  explicit On(int device) : before_(device < 0 ? -1 : real::select(device)) {}
  ~On() {
    if (before_ >= 0) (void)real::select(before_);
  }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

 private:
  int before_;
};

}  // namespace capstan::device
