// mpi_main.cpp -- main() of tests on real ranks: every rank runs every test, and rank 0 prints.
//
// MPI stays initialized while the tests run, as in a program that also uses MPI itself; tests may call MPI. A
// failure on any rank fails the run.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace {

/// Prints only failures, as "[rank 1] file.cpp:12: message".
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

/// Returns the worst result of all ranks, and finalizes MPI. If a test has finalized MPI, returns this rank's
/// result: mpiexec combines the exit codes.
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
  GTEST_FLAG_SET(color, "no");  // mpiexec gives ranks a pseudo-terminal, but the output goes to a log
  testing::InitGoogleTest(&argc, argv);

  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  // The launcher of another MPI would start N worlds of one rank, in each of which the tests pass.
  const char* expected = std::getenv("CAPSTAN_TESTS_RANKS");
  if (expected != nullptr && std::atoi(expected) != size) {
    std::fprintf(stderr, "MPI has %d ranks, expected %s; is mpiexec from this MPI?\n", size, expected);
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
