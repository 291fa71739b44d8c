// ps_gpu_memory.cpp -- releases mappings; staging buffers remain as released objects.
#include "client/channel/ps_gpu_memory.hpp"

#include <exception>

#include "base/log.hpp"

namespace capstan::client {

StagingBuffer* PsGpuMemory::staging_buffer(int gpu) noexcept {
  const auto known = staging_buffers_.find(gpu);
  return known == staging_buffers_.end() || known->second.released() ? nullptr : &known->second;
}

StagingBuffer& PsGpuMemory::add_staging_buffer(int gpu, const protocol::StagingBufferKey& key) {
  return staging_buffers_.insert_or_assign(gpu, StagingBuffer(gpu, key)).first->second;
}

void PsGpuMemory::release() noexcept {
  for (auto& [gpu, buffer] : staging_buffers_) buffer.release();
  for (const auto& [gpu, last_read] : last_reads_) {
    try {
      last_read->wait();
    } catch (const std::exception& error) {
      log::error("{}", error.what());
    }
  }
  last_reads_.clear();
  shards_.clear();
}

}  // namespace capstan::client
