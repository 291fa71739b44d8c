// store_restore.hpp -- verifies and restores the shards of a store from a checkpoint.
#pragma once

#include <string>

#include "protocol/restore_plan.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

/// Reads datasets of a checkpoint and verifies their checksums. Throws Error: data_loss, which names the file
/// and the dataset; failed_precondition if a file does not exist on this host.
void check_restore(const protocol::CheckRestore& check);

/// Verifies a checkpoint and restores all shards of the store from it. Throws the errors of check_restore.
/// REQUIRES: no client uses the shards yet.
void restore_checkpoint(Store& store, const std::string& directory);

}  // namespace capstan::ps
