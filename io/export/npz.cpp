// npz.cpp -- a ZIP archive of .npy files.
#include <fmt/format.h>

#include "io/export/export.hpp"
#include "io/export/npy.hpp"
#include "io/export/zip.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {
namespace {

std::string member_name(const ArrayInfo& array) {
  if (array.component == kValue) return array.variable + ".npy";
  return fmt::format("{}/slots/{}.npy", array.variable, array.component);
}

}  // namespace

void export_npz(const CheckpointReader& from, const std::vector<ArrayInfo>& arrays, OutputFile& to,
                const ProgressCallback& progress) {
  ZipWriter zip(to);
  for (const ArrayInfo& array : arrays) {
    const DType dtype = numpy_dtype(array.dtype);
    const std::string head = npy_head(dtype, array.shape);
    zip.begin(member_name(array), head.size() + array.bytes() / size_of(array.dtype) * size_of(dtype));
    zip.write(head);
    read_exported(from, array, /*widen=*/true, progress, [&](std::string_view piece) { zip.write(piece); });
    zip.end();
  }
  zip.finish();
}

}  // namespace capstan::io
