// commands.hpp -- the subcommands of `capstan checkpoint`. Each returns the exit code and throws Error.
#pragma once

#include "launch/checkpoint/request.hpp"

namespace capstan::launch::checkpoint {

/// Runs the subcommand of `request.verb`.
int run(const Request& request);

int list(const Request& request);
int show(const Request& request);
int verify(const Request& request);
/// Returns 0 if equal, 1 if different, 2 on an error, which it reports instead of throwing.
int diff(const Request& request);
int export_to(const Request& request);
int import_from(const Request& request);
int reshard(const Request& request);
int compact(const Request& request);

}  // namespace capstan::launch::checkpoint
