// file_limit.hpp -- room for the connections of a large job.
#pragma once

#include <cstddef>

namespace capstan::cluster {

/// Over TCP each connection is a file descriptor, and the usual limit is 1,024 for a process. Raises this
/// process's limit, as far as the system lets it, when `connections` and what else a rank has open would not
/// fit; warns when they will not fit even so. Leaves it alone otherwise.
void make_room_for(std::size_t connections);

}  // namespace capstan::cluster
