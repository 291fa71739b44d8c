// row_update_half.cu -- Updater for the 16-bit types.
#include "gpu/row_update.cuh"

namespace capstan::gpu {

template void Updater::apply(const Stream&, const Optimizer&, const Update<float16>&);
template void Updater::apply(const Stream&, const Optimizer&, const Update<bfloat16>&);

}  // namespace capstan::gpu
