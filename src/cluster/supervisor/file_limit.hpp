// file_limit.hpp -- file descriptors for the connections of a large job.
#pragma once

#include <cstddef>

namespace capstan::cluster {

/// Over TCP each connection needs a file descriptor; the usual limit is 1,024 per process. Raises this
/// process's limit, as far as permitted, if `connections` and a rank's other files exceed it; warns if they
/// still do.
void raise_file_limit_for(std::size_t connections);

}  // namespace capstan::cluster
