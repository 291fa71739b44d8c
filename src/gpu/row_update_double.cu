// row_update_double.cu -- Updater for double and for integers.
#include "gpu/row_update.cuh"

namespace capstan::gpu {

template void Updater::apply(const Stream&, const Optimizer&, const Update<double>&);
template void Updater::apply(const Stream&, const Optimizer&, const Update<std::int32_t>&);
template void Updater::apply(const Stream&, const Optimizer&, const Update<std::int64_t>&);

}  // namespace capstan::gpu
