// store_restore.hpp -- verifies and restores the shards of a store from a checkpoint.
#pragma once

#include <string>

#include "protocol/restore_plan.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

/// Reads datasets of a checkpoint and verifies their checksums. Throws Error: data_loss, which names the file
/// and the dataset; failed_precondition if a file does not exist on this host.
void check_restore(const protocol::CheckRestore& check);

/// Verifies the datasets of a checkpoint that the store needs, then restores all of its shards from them.
/// Throws the errors of io::CheckpointReader, protocol::RestorePlan and check_restore. REQUIRES: no client
/// uses the shards yet.
void restore_checkpoint(Store& store, const std::string& directory);

}  // namespace capstan::ps
