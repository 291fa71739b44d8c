// trace.cpp -- prints the result of merge_traces().
#include "launch/trace.hpp"

#include <fmt/format.h>

#include "io/events/merge_traces.hpp"

namespace capstan::launch {

int merge_trace(const std::string& run_dir) {
  const io::MergedTrace merged = io::merge_traces(run_dir);
  fmt::print("{}: {} events of {} ranks; open it at https://ui.perfetto.dev\n", merged.path.string(),
             merged.events, merged.ranks);
  return 0;
}

}  // namespace capstan::launch
