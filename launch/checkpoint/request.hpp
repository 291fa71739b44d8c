// request.hpp -- options of `capstan checkpoint`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan::launch::checkpoint {

enum class Verb { list, show, verify, diff, export_file, import_file, reshard, compact };

struct Request {
  Verb verb = Verb::list;
  std::string from = {};  // first argument: a checkpoint, a directory of checkpoints, or the file to import
  std::string to = {};    // second argument: the other checkpoint, or the output
  bool json = false;
  bool verify = false;                      // list: verify the checksums
  bool norms = true;                        // show
  bool slots = false;                       // export: include optimizer slots
  bool compare_slots = true;                // diff: compare optimizer slots
  bool force = false;                       // replace existing output
  std::vector<std::string> variables = {};  // export: the selection; import: the name of the new variable
  std::string format = {};                  // export; "": by the suffix of `to`
  std::string dataset = {};                 // import
  std::string optimizer = "sgd";            // import: optimizer whose slots are added
  double initial_accumulator = 0.1;         // import
  std::int64_t step = 0;                    // import
  std::int64_t parts = 0;                   // reshard
};

}  // namespace capstan::launch::checkpoint
