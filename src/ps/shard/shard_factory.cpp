// shard_factory.cpp -- validates requests, allocates in the order of the manifest's records, and rolls back.
#include "ps/shard/shard_factory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "protocol/descriptor.hpp"
#include "ps/shard/device_shard.hpp"

namespace capstan::ps {
namespace {

/// Repeats the checks of the coordinator, since these numbers determine the memory layout.
void check_size(const protocol::CreateShard& request) {
  const std::uint64_t all = protocol::rows_of(request.shape);
  protocol::check_bytes(request.name, request.dtype, request.shape, request.optimizer.kind);
  protocol::check_shard_rows(request.name, request.shard, request.rows, all);
  if (request.storage.int8)
    protocol::check_int8_rows(request.name, request.dtype, request.shape, request.memory);
  if (request.first_row <= all && request.rows <= all - request.first_row) return;
  throw Error(Code::invalid_argument,
              fmt::format("variable \"{}\": shard {} has {} rows from row {} on, expected rows among {}",
                          request.name, request.shard, request.rows, request.first_row, all));
}

/// A table has rows only for keys, so nothing can depend on its shape.
void check_table(const protocol::CreateShard& request) {
  const InitializerKind kind = request.initializer.kind;
  const auto reject = [&](const char* what) {
    throw Error(Code::unimplemented, fmt::format("dynamic table \"{}\": {}", request.name, what));
  };
  if (request.rows > protocol::TableLayout::kMaxRows)
    reject("found more than 2^31 rows for one ps; use more ps");
  if (request.memory == ShardMemory::device) reject("found the memory of a GPU, expected main memory");
  if (request.fill != 0 || kind == InitializerKind::orthogonal || kind == InitializerKind::identity)
    reject("found an initializer that depends on the shape, expected one for single elements");
}

PieceLocation location_of_piece(const Piece& piece) { return {piece.region, piece.offset}; }

protocol::ShardLocation location_of(int ps, const protocol::CreateShard& description, const Piece& values,
                                    const Piece& words) {
  return {ps,           description.first_row, description.rows, values.region, values.offset,
          words.region, words.offset};
}

}  // namespace

std::shared_ptr<Shard> ShardFactory::make(const protocol::CreateShard& request, bool restored) {
  check_size(request);
  if (request.table) check_table(request);
  protocol::check_optimizer(request.name, request.dtype, request.optimizer);
  protocol::check_initializer(request.name, request.dtype, {request.shape.begin(), request.shape.end()},
                              request.initializer);
  const Mark before = mark();
  try {
    ShardRecord record{request, {}};
    std::shared_ptr<Shard> made = allocate(request, record);
    if (!restored) made->initialize();
    if (persistent_ != nullptr) persistent_->append(PersistentState::Record::shard, to_bytes(record));
    const bool further = newest_ && newest_->variable == request.variable && newest_->after == before;
    newest_ = Newest{request.variable, further ? newest_->before : before, mark()};
    return made;
  } catch (const Error& error) {
    roll_back(before);
    if (error.code() != Code::resource_exhausted) throw;
    throw_exhausted(request, error.what());
  } catch (...) {
    roll_back(before);
    throw;
  }
}

void ShardFactory::throw_exhausted(const protocol::CreateShard& request, const char* why) const {
  const std::uint64_t width = protocol::width_of(request.shape);
  std::uint64_t row = protocol::stored_row_bytes(request.dtype, width, request.storage);
  for (std::size_t slot = 0; slot < protocol::slots_of(request.optimizer.kind).size(); ++slot)
    row += width * size_of(protocol::slot_dtype(request.dtype));
  throw Error(Code::resource_exhausted,
              fmt::format("cannot allocate shard {} of variable \"{}\" on ps {}: {} rows, {} bytes with the "
                          "optimizer's slots: {}",
                          protocol::name_of(request), request.name, ps_index_, request.rows,
                          request.rows * row, why));
}

std::shared_ptr<Shard> ShardFactory::allocate(const protocol::CreateShard& request, ShardRecord& record) {
  if (request.table) return allocate_table(request, record);
  return request.memory == ShardMemory::device ? allocate_on_device(request, record)
                                               : allocate_on_host(request, record);
}

std::shared_ptr<Shard> ShardFactory::allocate_table(const protocol::CreateShard& request,
                                                    ShardRecord& record) {
  const auto layout = protocol::TableLayout::of(request.rows, protocol::width_of(request.shape),
                                                request.dtype, request.storage, request.optimizer.kind);
  const Piece memory = heap_.reserve(layout.bytes());
  const Piece words = allocate_words();
  record.pieces = {location_of_piece(memory), location_of_piece(words)};
  return table_shard(request, memory, words);
}

/// Shards of an update group have no journal: they are not recovered, and a step may exceed the journal,
/// which has room for one entry.
HostShard::Shared ShardFactory::shared_by(const protocol::CreateShard& description) const {
  const bool recovers = persistent_ != nullptr && description.group == 0;
  return {chunks_, parts_, recovers ? &persistent_->journal() : nullptr};
}

std::shared_ptr<TableShard> ShardFactory::table_shard(const protocol::CreateShard& description,
                                                      const Piece& memory, const Piece& words) const {
  protocol::ShardLocation location = location_of(ps_index_, description, memory, words);
  location.offset +=
      protocol::TableLayout::of(description.rows, protocol::width_of(description.shape), description.dtype,
                                description.storage, description.optimizer.kind)
          .values();
  return std::make_shared<TableShard>(description, location, Shard::Words::at(words.data), memory.data,
                                      shared_by(description));
}

std::shared_ptr<Shard> ShardFactory::allocate_on_host(const protocol::CreateShard& request,
                                                      ShardRecord& record) {
  const std::uint64_t width = protocol::width_of(request.shape);
  const std::uint64_t elements = request.rows * width;
  const Piece values =
      heap_.allocate(request.rows * protocol::stored_row_bytes(request.dtype, width, request.storage));
  std::vector<Piece> slots;
  for (std::size_t slot = 0; slot < protocol::slots_of(request.optimizer.kind).size(); ++slot)
    slots.push_back(heap_.allocate(elements * size_of(protocol::slot_dtype(request.dtype))));
  const Piece words = allocate_words();
  record.pieces = {location_of_piece(values), location_of_piece(words)};
  std::vector<std::byte*> addresses;
  for (const Piece& slot : slots) {
    record.pieces.push_back(location_of_piece(slot));
    addresses.push_back(slot.data);
  }
  return host_shard(request, values, words, std::move(addresses));
}

std::shared_ptr<Shard> ShardFactory::allocate_on_device(const protocol::CreateShard& request,
                                                        ShardRecord& record) {
  const Piece words = allocate_words();
  const Piece none{protocol::kNoRegion, 0, nullptr};
  record.pieces = {location_of_piece(none), location_of_piece(words)};
  return std::make_shared<DeviceShard>(request, location_of(ps_index_, request, none, words),
                                       Shard::Words::at(words.data), device_);
}

std::shared_ptr<HostShard> ShardFactory::host_shard(const protocol::CreateShard& description,
                                                    const Piece& values, const Piece& words,
                                                    std::vector<std::byte*> slots) const {
  return std::make_shared<HostShard>(
      description, location_of(ps_index_, description, values, words), Shard::Words::at(words.data),
      HostShard::Arrays{values.data, std::move(slots)}, shared_by(description));
}

std::shared_ptr<HostShard> ShardFactory::recover(const ShardRecord& record) const {
  const auto piece = [&](std::size_t number) {
    const PieceLocation& at = record.pieces.at(number);
    return heap_.at(at.region, at.offset);
  };
  if (record.description.table) return table_shard(record.description, piece(0), piece(1));
  std::vector<std::byte*> slots;
  for (std::size_t slot = 2; slot < record.pieces.size(); ++slot) slots.push_back(piece(slot).data);
  return host_shard(record.description, piece(0), piece(1), std::move(slots));
}

void ShardFactory::reclaim(std::uint32_t variable) {
  if (newest_ && newest_->variable == variable && newest_->after == mark()) {
    roll_back(newest_->before);
  } else if (persistent_ != nullptr) {  // something else was allocated since
    persistent_->append_words(PersistentState::Record::dropped, {variable});
  }
  newest_.reset();
}

ShardFactory::Mark ShardFactory::mark() const noexcept {
  return {heap_.mark(), persistent_ == nullptr ? PersistentState::Mark{} : persistent_->mark(), versions_,
          versions_used_};
}

/// Unregisters regions before it unmaps their memory.
void ShardFactory::roll_back(const Mark& mark) noexcept {
  heap_.roll_back(mark.heap);
  if (persistent_ != nullptr) persistent_->roll_back(mark.manifest);
  versions_ = mark.versions;
  versions_used_ = mark.versions_used;
}

Piece ShardFactory::allocate_words() {
  constexpr std::uint64_t kPage = 4096;
  if (versions_.data == nullptr || versions_used_ == kPage) {
    versions_ = heap_.allocate(kPage);
    versions_used_ = 0;
  }
  const Piece line{versions_.region, versions_.offset + versions_used_, versions_.data + versions_used_};
  versions_used_ += protocol::kCacheLine;
  std::memset(line.data, 0, protocol::kCacheLine);  // a shard that was rolled back may have used it
  return line;
}

}  // namespace capstan::ps
