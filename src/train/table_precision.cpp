// table_precision.cpp -- conversion of settings to the precision of tables.
#include "train/table_precision.hpp"

#include <fmt/format.h>

#include <string>

#include "base/settings.hpp"
#include "capstan/error.hpp"

namespace capstan::train {

TablePrecision TablePrecision::from(const Settings& settings) {
  const std::string& dtype = settings.text("table-dtype");
  if (dtype == "float32") {
    if (settings.given("table-rounding")) {
      throw Error(
          Code::invalid_argument,
          "--table-rounding: found --table-dtype float32, expected float16, bfloat16 or int8; float32 tables "
          "always round to nearest");
    }
    return {};
  }
  if (settings.text("device") == "cuda") {
    throw Error(Code::invalid_argument,
                fmt::format("--table-dtype {}: found --device cuda, expected cpu; {}", dtype,
                            dtype == "int8" ? "workers on a GPU do not support int8 tables"
                                            : "workers on a GPU read and push float32 rows only"));
  }
  if (settings.text("communication-dtype") != "float32") {
    throw Error(Code::invalid_argument,
                fmt::format("--table-dtype {}: found --communication-dtype {}, expected float32; {}", dtype,
                            settings.text("communication-dtype"),
                            dtype == "int8" ? "`capstan train` does not support both together"
                                            : "messages of these tables have 16-bit values in any case"));
  }
  if (settings.flag("int8-lookups")) {
    throw Error(
        Code::invalid_argument,
        fmt::format("--table-dtype {}: found --int8-lookups, expected float32 tables with it", dtype));
  }
  const bool stochastic = settings.text("table-rounding") == "stochastic";
  if (dtype == "int8") return {DType::float32, stochastic, true};
  return {dtype == "float16" ? DType::float16 : DType::bfloat16, stochastic};
}

}  // namespace capstan::train
