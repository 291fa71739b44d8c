// master.hpp -- checkpoint.h5: virtual datasets that show every variable and slot as one array.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "io/hdf5/checkpoint_types.hpp"

namespace capstan::io {

/// Writes `<folder>/checkpoint.h5` over the parts beside it and fsyncs it. `variables` is what `parts` hold.
void write_master(const std::filesystem::path& folder, std::int64_t step, std::span<const PartReport> parts,
                  std::span<const VariableInfo> variables);

}  // namespace capstan::io
