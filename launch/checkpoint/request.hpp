// request.hpp -- what the user of `capstan checkpoint` asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan::launch::checkpoint {

enum class Verb { list, show, verify, diff, export_file, import_file, reshard, compact };

struct Request {
  Verb verb = Verb::list;
  std::string from = {};  // the first word: a checkpoint, a folder of them, or the file to import
  std::string to = {};    // the second: the other checkpoint, or where to write
  bool json = false;
  bool verify = false;                      // of list: read every byte
  bool norms = true;                        // of show
  bool slots = false;                       // of export: these too
  bool compare_slots = true;                // of diff
  bool force = false;                       // replace what is there
  std::vector<std::string> variables = {};  // of export: these alone; of import: the one to be made
  std::string format = {};                  // of export; "" follows from the name
  std::string dataset = {};                 // of import
  std::string optimizer = "sgd";            // of import: whose slots there are
  double initial_accumulator = 0.1;         // of import
  std::int64_t step = 0;                    // of import
  std::int64_t parts = 0;                   // of reshard
};

}  // namespace capstan::launch::checkpoint
