// table_precision.hpp -- the dtype of a program's tables and the rounding of its updates: --table-dtype and
// --table-rounding.
#pragma once

#include <cstdint>
#include <string_view>

#include "capstan/dtype.hpp"

namespace capstan {
class Settings;
}

namespace capstan::train {

struct TablePrecision {
  DType dtype = DType::float32;  // float32, float16 or bfloat16
  bool stochastic_rounding = false;
  bool int8_rows = false;  // tables of float32 rows of at least protocol::kMinInt8Elements elements

  /// Returns the value of --table-dtype.
  std::string_view name() const noexcept { return int8_rows ? "int8" : to_string(dtype); }
  /// Throws Error(invalid_argument) for 16-bit and int8 tables with --device cuda, --communication-dtype
  /// bfloat16 or --int8-lookups, and for --table-rounding with float32 tables.
  static TablePrecision from(const Settings& settings);
};

}  // namespace capstan::train
