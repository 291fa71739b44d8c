// export.cpp -- `capstan checkpoint export`: writes variables to one file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "capstan/error.hpp"
#include "io/export/export.hpp"
#include "io/hdf5/array_stream.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/table_parts.hpp"
#include "io/output_file.hpp"
#include "launch/checkpoint/byte_progress.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/output.hpp"
#include "launch/units.hpp"

namespace capstan::launch::checkpoint {
namespace {

constexpr std::array<std::string_view, 4> kFormats{"model", "npy", "npz", "keras"};

std::string format_of(const Request& request) {
  const std::string_view out = request.to;
  if (!request.format.empty()) {
    if (std::find(kFormats.begin(), kFormats.end(), request.format) == kFormats.end()) {
      throw Error(Code::invalid_argument,
                  fmt::format("--format {}: expected {}", request.format, fmt::join(kFormats, ", ")));
    }
    if (request.format == "keras" &&
        (out.ends_with(".weights.h5") || !(out.ends_with(".h5") || out.ends_with(".hdf5")))) {
      throw Error(Code::invalid_argument, fmt::format("{}: expected a name with the suffix .h5 or .hdf5 for "
                                                      "--format keras, but not .weights.h5, which "
                                                      "Keras takes for another format",
                                                      out));
    }
    return request.format;
  }
  if (out.ends_with(".h5") || out.ends_with(".hdf5")) return "model";
  if (out.ends_with(".npy")) return "npy";
  if (out.ends_with(".npz")) return "npz";
  throw Error(
      Code::invalid_argument,
      fmt::format("{}: unknown suffix, expected .h5, .hdf5, .npy or .npz; rename it or pass --format", out));
}

void check_different(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) ==
        names.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    throw Error(Code::invalid_argument, fmt::format("--variable {} is given twice", names[i]));
  }
}

void check_fits(const Request& request, std::string_view format, const std::vector<io::ArrayInfo>& arrays) {
  if (request.slots && format != "model" && format != "npz") {
    throw Error(Code::invalid_argument,
                fmt::format("--slots: not supported by --format {}, expected model or npz", format));
  }
  if (format != "npy" || arrays.size() == 1) return;
  std::vector<std::string> names;
  for (const io::ArrayInfo& array : arrays) {
    if (array.component == io::kTableKeys && names.size() == 1 && arrays.size() == 2) {
      throw Error(Code::invalid_argument,
                  fmt::format("a .npy file holds one array, but dynamic table \"{}\" has rows and keys; "
                              "export it to .npz",
                              names.front()));
    }
    if (array.component == io::kValue) names.push_back(array.variable);
  }
  throw Error(
      Code::invalid_argument,
      fmt::format("a .npy file holds one variable; select one with --variable: {}", fmt::join(names, ", ")));
}

void write(std::string_view format, const io::CheckpointReader& reader,
           const std::vector<io::ArrayInfo>& arrays, io::OutputFile& to) {
  ByteProgress progress("export", io::bytes_of(arrays));
  if (format == "npy") return io::export_npy(reader, arrays.front(), to, progress.callback());
  if (format == "npz") return io::export_npz(reader, arrays, to, progress.callback());
  if (format == "keras") return io::export_keras(reader, arrays, to, progress.callback());
  io::export_model(reader, arrays, to, progress.callback());
}

}  // namespace

int export_to(const Request& request) {
  const std::string format = format_of(request);
  const io::CheckpointReader reader(find_checkpoint(request.from));
  check_different(request.variables);
  const auto arrays = io::exported_arrays(reader, request.variables, request.slots);
  check_fits(request, format, arrays);
  io::OutputFile to(request.to, request.force);
  write(format, reader, arrays, to);
  to.publish();
  const std::uint64_t bytes = io::file_bytes(to.path());
  if (request.json) {
    print_json(nlohmann::json{{"from", reader.directory().string()},
                              {"step", reader.step()},
                              {"path", to.path().string()},
                              {"format", format},
                              {"arrays", arrays.size()},
                              {"bytes", bytes}});
  } else {
    print(fmt::format("{}: {}, {}, {} of step {}\n", to.path().string(), format,
                      size_text(static_cast<double>(bytes)), count_text(arrays.size(), "array"),
                      reader.step()));
  }
  return 0;
}

}  // namespace capstan::launch::checkpoint
