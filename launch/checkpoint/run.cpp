// run.cpp -- dispatches to the subcommand.
#include "base/assert.hpp"
#include "launch/checkpoint/commands.hpp"

namespace capstan::launch::checkpoint {

int run(const Request& request) {
  switch (request.verb) {
    case Verb::list:
      return list(request);
    case Verb::show:
      return show(request);
    case Verb::verify:
      return verify(request);
    case Verb::diff:
      return diff(request);
    case Verb::export_file:
      return export_to(request);
    case Verb::import_file:
      return import_from(request);
    case Verb::reshard:
      return reshard(request);
    case Verb::compact:
      return compact(request);
  }
  CAPSTAN_ASSERT(!"a verb");
  return 0;
}

}  // namespace capstan::launch::checkpoint
