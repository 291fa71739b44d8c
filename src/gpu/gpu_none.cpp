// gpu_none.cpp -- real_gpu.hpp in a build without CUDA: the number of GPUs is 0, and calls that need a GPU
// throw.
#include "capstan/error.hpp"
#include "gpu/real_gpu.hpp"

namespace capstan::gpu::real {
namespace {

[[noreturn]] void refuse() { throw Error(Code::unimplemented, why_none()); }

}  // namespace

int count() noexcept { return 0; }
bool was_used() noexcept { return false; }
std::string why_none() {
  return "no GPU: this build lacks CUDA; rebuild with -DCAPSTAN_CUDA=ON and nvcc on PATH";
}
Info info(int) { refuse(); }
int select(int) { refuse(); }
void restore(int) noexcept {}
void* create_stream(int) { refuse(); }
void destroy_stream(int, void*) noexcept {}
void wait_for_stream(void*) { refuse(); }
void begin_after(void*, void*) { refuse(); }
void* create_event(int, Timing) { refuse(); }
void destroy_event(int, void*) noexcept {}
void record(void*, void*) { refuse(); }
void wait_for_event(void*) { refuse(); }
bool done(void*) { refuse(); }
double milliseconds(void*, void*) { refuse(); }
std::byte* allocate(int, std::size_t) { refuse(); }
void free(int, std::byte*) noexcept {}
std::byte* allocate_pinned(std::size_t) { refuse(); }
void free_pinned(std::byte*) noexcept {}
void copy(void*, void*, const void*, std::size_t) { refuse(); }
void fill_with_zeros(void*, void*, std::size_t) { refuse(); }
std::optional<std::array<std::byte, kExportBytes>> export_memory(int, std::byte*) noexcept {
  return std::nullopt;
}
std::byte* import_memory(int, const std::array<std::byte, kExportBytes>&) { refuse(); }
void close_imported(int, std::byte*) noexcept {}
std::size_t scratch_bytes(const Stream&, std::uint32_t) { refuse(); }
void sort_rows(const Stream&, const Memory&, std::uint32_t, int, const std::uint32_t*, std::uint32_t*,
               const std::uint32_t*, std::uint32_t*) {
  refuse();
}
void running_maximum(const Stream&, const Memory&, std::uint32_t, const std::uint32_t*, std::uint32_t*) {
  refuse();
}

}  // namespace capstan::gpu::real
