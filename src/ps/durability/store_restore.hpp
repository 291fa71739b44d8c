// store_restore.hpp -- verifying and restoring the shards of a store from a checkpoint.
#pragma once

#include <string>

#include "protocol/restore_plan.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

/// Reads bytes of a checkpoint and compares them with their checksums. Throws Error: data_loss, which names
/// the file and the dataset; failed_precondition when this host does not see the files.
void check_restore(const protocol::CheckRestore& check);

/// Verifies a checkpoint and restores all shards of the store from it. REQUIRES: no client uses them yet.
void restore_checkpoint(Store& store, const std::string& directory);

}  // namespace capstan::ps
