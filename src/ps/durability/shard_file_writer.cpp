// shard_file_writer.cpp -- runs one writing thread per save and reports its result.
#include "ps/durability/shard_file_writer.hpp"

#include <filesystem>
#include <random>
#include <string_view>
#include <utility>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "io/hdf5/part_writer.hpp"
#include "ps/durability/save_rate_limiter.hpp"

namespace capstan::ps {
namespace {

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

ShardFileWriter::ShardFileWriter(Store& store, int ps, std::uint64_t bytes_per_second,
                                 std::function<void()> wake, Report report)
    : store_(store),
      ps_(ps),
      bytes_per_second_(bytes_per_second),
      wake_(std::move(wake)),
      report_(std::move(report)) {}

ShardFileWriter::~ShardFileWriter() {
  for (auto& save : saves_) save->thread.request_stop();
  for (auto& save : saves_) {
    if (save->thread.joinable()) save->thread.join();
  }
}

void ShardFileWriter::begin(const protocol::SaveShards& request, int ps_count) {
  for (auto& save : saves_) {
    save->cancelled = true;
    save->thread.request_stop();
  }
  auto save = std::make_unique<Save>();
  save->request = request;
  save->ps_count = ps_count;
  save->attempt = random_number();
  save->snapshot = std::make_unique<StoreSnapshot>(store_, request.rows);
  saves_.push_back(std::move(save));
  advance();
}

void ShardFileWriter::write(Save& save, const std::stop_token& stop) {
  try {
    const protocol::SaveShards& request = save.request;
    FastParts fast({request.fast_directory, request.fast_owner}, warned_);
    write_files(save, fast, stop);
    save.copied.store(true, std::memory_order_release);
    wake_();
    SaveRateLimiter limiter(bytes_per_second_, &store_);
    fast.drain(request.directory, [&](std::uint64_t bytes) { limiter.throttle(bytes, stop); });
  } catch (...) {
    save.error = std::current_exception();
  }
  save.written.store(true, std::memory_order_release);
  wake_();
}

/// Writes each file to the fast level if there is one with enough space, else to the checkpoint directory.
/// Writes to the fast level have no rate limit: until a row is written to the file, a push must copy the row
/// before changing it, so the snapshot should be short-lived.
void ShardFileWriter::write_files(Save& save, FastParts& fast, const std::stop_token& stop) {
  SaveRateLimiter unlimited(0), limited(bytes_per_second_);
  SaveRateLimiter* limiter = nullptr;
  const auto files =
      save.snapshot->parts(save.request.parts, [&](std::uint64_t bytes) { limiter->throttle(bytes, stop); });
  const int count = save.ps_count;
  for (int file = 0; file < save.request.parts; ++file) {
    const std::string name = io::part_file_name(ps_ + file * count, count * save.request.parts, save.attempt);
    const auto& arrays = files[static_cast<std::size_t>(file)];
    limiter = &unlimited;
    std::optional<io::PartReport> report = fast.write(name, arrays);
    limiter = &limited;
    if (!report) report = io::write_part(std::filesystem::path(save.request.directory) / name, arrays);
    save.reports.push_back(*std::move(report));
  }
  save.coordinator_sees_parts = fast.visible_to_coordinator();
}

bool ShardFileWriter::advance() {
  bool any = !saves_.empty() && release_rows(*saves_.back());
  for (auto& save : saves_) {
    if (save->cancelled && !save->thread.joinable()) save->written = true;
  }
  std::erase_if(saves_, [&](std::unique_ptr<Save>& save) {
    if (!save->written.load(std::memory_order_acquire)) return false;
    any = true;
    if (save->cancelled) return true;
    (void)release_rows(*save);
    report(*save);
    return true;
  });
  if (saves_.empty()) return any;
  Save& last = *saves_.back();
  // An earlier save may still be writing a file of the same name.
  if (freeze_consistent(last) && saves_.size() == 1 && !last.thread.joinable()) {
    last.thread = std::jthread([this, &last](const std::stop_token& stop) { write(last, stop); });
    any = true;
  }
  return any;
}

/// Returns true once all shards have been frozen. If memory is exhausted, the save fails, not the ps.
bool ShardFileWriter::freeze_consistent(Save& save) {
  if (!save.snapshot || save.written) return false;
  try {
    return save.snapshot->advance();
  } catch (...) {
    save.error = std::current_exception();
    save.snapshot.reset();
    save.written = true;
    wake_();
    return false;
  }
}

/// If all rows of the snapshot have been copied, releases it and returns true.
bool ShardFileWriter::release_rows(Save& save) {
  if (!save.snapshot || !save.copied.load(std::memory_order_acquire)) return false;
  save.snapshot.reset();
  if (save.coordinator_sees_parts) report_({save.request.save, ps_, 0, 1}, to_bytes(save.reports));
  return true;
}

void ShardFileWriter::report(Save& save) {
  protocol::ShardsSaved saved{save.request.save, ps_, 0, 0};
  const auto fail = [&](Code code, std::string_view text) {
    saved.code = static_cast<std::int32_t>(code);
    report_(saved, std::as_bytes(std::span(text)));
  };
  try {
    if (save.error) std::rethrow_exception(save.error);
    report_(saved, to_bytes(save.reports));
  } catch (const Error& error) {
    fail(error.code(), error.what());
  } catch (const std::exception& error) {
    fail(Code::internal, error.what());
  }
}

}  // namespace capstan::ps
