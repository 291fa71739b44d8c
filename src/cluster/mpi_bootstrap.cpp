// mpi_bootstrap.cpp -- launch variables, the hash of the binary, and the all-gather of hellos.
#include "cluster/mpi_bootstrap.hpp"

#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string_view>

#include "capstan/serialize.hpp"
#include "cluster/role_map.hpp"
#include "cluster/runtime.hpp"

namespace capstan::cluster {
namespace {

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size()) return std::nullopt;
  return value;
}

void check_mpi(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw call_failed(call, std::string_view(text.data(), static_cast<std::size_t>(length)));
}

std::uint64_t hash_of_binary() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  if (!file)
    throw Error(Code::internal, "cannot read /proc/self/exe, which is needed to compare the ranks' binaries");
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  std::vector<char> block(1 << 20);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    XXH3_64bits_update(state, block.data(), static_cast<std::size_t>(file.gcount()));
  }
  const std::uint64_t hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return hash;
}

}  // namespace

std::optional<int> launched_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    if (const auto size = number_in(variable)) return size;
  }
  // srun --mpi=pmix sets no size of its own; a step of Slurm knows it.
  if (std::getenv("PMIX_RANK") != nullptr) return number_in("SLURM_STEP_NUM_TASKS");
  return std::nullopt;
}

int launched_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const auto rank = number_in(variable)) return *rank;
  }
  return 0;
}

Hello make_hello() { return {host_name(), getpid(), hash_of_binary(), "", {}, {}}; }

Table exchange(MPI_Comm communicator, const Hello& hello) {
  Table table;
  int ranks = 0;
  check_mpi(MPI_Comm_rank(communicator, &table.rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator, &ranks), "MPI_Comm_size");

  const std::vector<std::byte> mine = to_bytes(hello);
  const int length = static_cast<int>(mine.size());
  std::vector<int> lengths(static_cast<std::size_t>(ranks));
  check_mpi(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, communicator), "MPI_Allgather");
  std::vector<int> offsets(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), 0);
  std::vector<std::byte> all(static_cast<std::size_t>(offsets.back() + lengths.back()));
  check_mpi(MPI_Allgatherv(mine.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(),
                           MPI_BYTE, communicator),
            "MPI_Allgatherv");

  std::vector<Hello> hellos;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    hellos.push_back(
        from_bytes<Hello>({all.data() + offsets[rank], static_cast<std::size_t>(lengths[rank])}));
  }
  table.members = make_members(hellos);
  table.restarts = hello.restarts;
  table.late = hello.late;
  table.coordinator_wait = hello.coordinator_wait;
  return table;
}

}  // namespace capstan::cluster
