// gpu_none.cpp -- gpu.hpp and row_ops.hpp in a build without CUDA: there is no GPU, and who wants one is told
// why.
#include "capstan/error.hpp"
#include "device/gpu.hpp"
#include "device/row_ops.hpp"

namespace capstan::device {
namespace {

[[noreturn]] void refuse() { throw Error(Code::unimplemented, why_none()); }

}  // namespace

int count() noexcept { return 0; }
std::string why_none() {
  return "no GPU: this build has no CUDA; build it with -DCAPSTAN_CUDA=ON where nvcc is on PATH";
}
Info info(int) { refuse(); }
Stream::Stream(int device) : device_(device) { refuse(); }
void Stream::Destroy::operator()(void*) const noexcept {}
void Stream::wait() const { refuse(); }
Event::Event() { refuse(); }
void Event::Destroy::operator()(void*) const noexcept {}
void Event::record(const Stream&) { refuse(); }
double Event::milliseconds_since(const Event&) const { refuse(); }
Memory::Memory(int, std::size_t) { refuse(); }
void Memory::Free::operator()(std::byte*) const noexcept {}
void copy(const Stream&, void*, const void*, std::size_t) { refuse(); }
void fill_with_zeros(const Stream&, void*, std::size_t) { refuse(); }

void gather(const Stream&, const RowCopy&) { refuse(); }
void scatter(const Stream&, const RowCopy&) { refuse(); }
Updater::Updater(const Stream&, std::uint32_t table_rows, bool deterministic)
    : table_rows_(table_rows), deterministic_(deterministic) {
  refuse();
}
template <class T>
void Updater::apply(const Stream&, const Optimizer&, const Update<T>&) {
  refuse();
}
template void Updater::apply(const Stream&, const Optimizer&, const Update<float>&);
template void Updater::apply(const Stream&, const Optimizer&, const Update<double>&);
template void Updater::apply(const Stream&, const Optimizer&, const Update<float16>&);
template void Updater::apply(const Stream&, const Optimizer&, const Update<bfloat16>&);
template void Updater::apply(const Stream&, const Optimizer&, const Update<std::int32_t>&);
template void Updater::apply(const Stream&, const Optimizer&, const Update<std::int64_t>&);

}  // namespace capstan::device
