// mpi_main.cpp -- main() of a test that runs on real ranks: every rank runs every test, one rank prints.
//
// MPI is open while the tests run, as it is in a program that uses Capstan on the side; a test that needs the
// world calls MPI itself. A failure on any rank fails the run.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace {

/// Prints "[rank 1] file.cpp:12: what failed" and nothing else.
class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const char* file = result.file_name() != nullptr ? result.file_name() : "unknown file";
    std::fprintf(stderr, "[rank %d] %s:%d: %s\n", rank_, file, result.line_number(), result.summary());
  }

 private:
  int rank_;
};

/// The worst result of all ranks. A test may have finalized MPI; then mpiexec combines the exit codes.
int worst_of_all_ranks(int failed) {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) return failed;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  GTEST_FLAG_SET(color, "no");  // mpiexec gives the ranks a terminal, but its output goes into a log
  testing::InitGoogleTest(&argc, argv);

  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  // A launcher from another MPI starts N worlds of one rank, and all would pass.
  const char* wanted = std::getenv("CAPSTAN_TEST_RANKS");
  if (wanted != nullptr && std::atoi(wanted) != size) {
    std::fprintf(stderr, "wanted %s ranks, MPI says %d: is mpiexec from this MPI?\n", wanted, size);
    MPI_Finalize();
    return EXIT_FAILURE;
  }

  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(rank));
  }

  int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "[rank %d] no test was selected\n", rank);
    failed = EXIT_FAILURE;
  }
  return worst_of_all_ranks(failed);
}
