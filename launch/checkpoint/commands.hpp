// commands.hpp -- what each subcommand of `capstan checkpoint` does. Each returns its exit code and throws
// Error.
#pragma once

#include "launch/checkpoint/request.hpp"

namespace capstan::launch::checkpoint {

int run(const Request& request);

int list(const Request& request);
int show(const Request& request);
int verify(const Request& request);
/// 0: equal, 1: different, 2: trouble, which it has told.
int diff(const Request& request);
int export_to(const Request& request);
int import_from(const Request& request);
int reshard(const Request& request);
int compact(const Request& request);

}  // namespace capstan::launch::checkpoint
