// request.hpp -- options of `capstan report`.
#pragma once

#include <string>

namespace capstan::launch::report {

struct Request {
  std::string run_dir = {};  ///< "": no files of a job
  std::string output = "capstan-report.txt";
  bool force = false;  ///< replace an existing output
  bool perf = false;   ///< also run short benchmarks
};

}  // namespace capstan::launch::report
