# capstan_test(<name> <sources> LAYER <layer> [USES ...] [LINK ...])         a test of one process
# capstan_mpi_test(<name> <source> LAYER <layer> RANKS 3 4 [USES ...])       one CTest entry for each number of ranks
# capstan_job_test(<group> <name> <script> TIMEOUT s [COST s] [ARGS ...]     a script that starts programs under mpirun
#                  [WAITS] [FULL] [SHORT Case.test ...]
#                  [MPICH Case.test ...])
#   COST: expected duration; CTest starts expensive tests first.
#   WAITS: the test mostly waits for timeouts, so it counts as one processor.
# With a second MPI, every capstan_mpi_test and the MPICH cases of every capstan_job_test also run under it, as NAME.mpich.
# Every test has a TIMEOUT. The asan preset runs the label "unit". The tsan preset runs the label "threads": most unit tests
# whose ranks are threads (USES rank_threads), which the target thread_tests builds.
#
# `launch/test` verifies a build on the user's machine: it runs all tests without the label "full". `launch/test --all` runs
# all tests without the label "short". FULL gives a capstan_job_test the label "full". SHORT also registers its cases as the
# test NAME.short with the label "short", and the complete script gets the label "full". The target short_tests builds all
# programs that `launch/test` needs; unit_tests builds only the unit tests among them. The programs of a script are added
# where the script is registered.
add_custom_target(short_tests)
add_custom_target(unit_tests)
add_dependencies(short_tests unit_tests)
add_custom_target(thread_tests)

# For tests whose command is mpirun: lets Open MPI 4 and 5 run as root, with more ranks than cores. Scripts import
# tests/support/open_mpi.py instead.
set(CAPSTAN_MPI_ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_pml=ob1
                    PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)

include(CapstanPython)

# Precompiled headers halve the compile time of most tests. Tests of layers above the public API also precompile
# capstan.hpp; an edit of a public header then recompiles no other tests. Tests are compiled without optimization, since each
# runs for about a second; the libraries under test are optimized.
set(CAPSTAN_TESTS_OPTIONS ${CAPSTAN_WARNINGS} -O0)
set(CAPSTAN_TESTS_HEADERS <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <filesystem> <fstream> <random> <thread>)
capstan_headers(capstan_test_headers OPTIONS ${CAPSTAN_TESTS_OPTIONS} LINK GTest::gmock GTest::gtest HEADERS ${CAPSTAN_TESTS_HEADERS})
capstan_headers(capstan_program_test_headers OPTIONS ${CAPSTAN_TESTS_OPTIONS} LINK GTest::gmock GTest::gtest
                HEADERS ${CAPSTAN_TESTS_HEADERS} <capstan/capstan.hpp>)

# For USES: a cluster whose ranks are threads (tests/support/rank_threads.hpp), with its dependencies.
add_library(capstan_rank_threads STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/support/rank_threads.cpp)
target_include_directories(capstan_rank_threads PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
target_compile_options(capstan_rank_threads PRIVATE ${CAPSTAN_TESTS_OPTIONS})
target_precompile_headers(capstan_rank_threads REUSE_FROM capstan_test_headers)
target_link_libraries(capstan_rank_threads PUBLIC capstan_coordinator PRIVATE GTest::gtest fmt::fmt)

add_library(capstan_test_main STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/support/main.cpp)
target_compile_options(capstan_test_main PRIVATE ${CAPSTAN_TESTS_OPTIONS})
target_link_libraries(capstan_test_main PRIVATE GTest::gmock GTest::gtest)

function(capstan_test_target name source layer)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}
                                             ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE ${CAPSTAN_TESTS_OPTIONS})
  if(layer MATCHES "^(strategy|checkpoint|coordinator|train)$")
    target_precompile_headers(${name} REUSE_FROM capstan_program_test_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM capstan_test_headers)
  endif()
  target_compile_definitions(${name} PRIVATE CAPSTAN_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             CAPSTAN_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE capstan_${layer} fmt::fmt)
endfunction()

# The tests of a directory are one program, <directory>_tests; each CTest entry runs its own files (tests/support/main.cpp).
# Linking once and CMAKE_UNITY_BUILD halve the build time. Names in anonymous namespaces must be unique in a directory.
function(capstan_test name sources)
  cmake_parse_arguments(arg "" "LAYER;TIMEOUT" "USES;LINK" ${ARGN})
  get_filename_component(directory ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(program ${directory}_tests)
  if(NOT TARGET ${program})
    capstan_test_target(${program} "${sources}" ${arg_LAYER})
    target_link_libraries(${program} PRIVATE capstan_test_main GTest::gmock GTest::gtest)
    if(NOT arg_LAYER STREQUAL "bench")
      add_dependencies(unit_tests ${program})
    endif()
  else()
    target_sources(${program} PRIVATE ${sources})
  endif()
  list(TRANSFORM arg_USES PREPEND capstan_)
  target_link_libraries(${program} PRIVATE ${arg_USES} ${arg_LINK})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(files)
  foreach(source IN LISTS sources)
    get_filename_component(file ${source} NAME)
    list(APPEND files --file ${file})
  endforeach()
  add_test(NAME ${arg_LAYER}.${name} COMMAND ${program} ${files})
  set_tests_properties(${arg_LAYER}.${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "unit;${arg_LAYER}")
  if(arg_LAYER STREQUAL "bench")
    set_property(TEST ${arg_LAYER}.${name} APPEND PROPERTY LABELS full)
  endif()
  # The tsan preset omits the directories launch and conformance: their sources compile slowly, and other tests call the same
  # code in ranks as threads.
  if("capstan_rank_threads" IN_LIST arg_USES AND NOT directory MATCHES "^(launch|conformance)$")
    set_property(TEST ${arg_LAYER}.${name} APPEND PROPERTY LABELS threads)
    add_dependencies(thread_tests ${program})
  endif()
endfunction()

# Registers a test that skips because MPICH was not found.
function(capstan_skip_mpich test label)
  add_test(NAME ${test}.mpich
           COMMAND ${CAPSTAN_PYTHON} -c "print('SKIP: MPICH: ${CAPSTAN_MPICH_SUMMARY}'); raise SystemExit(77)")
  set_tests_properties(${test}.mpich PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77 LABELS "mpi;${label};full")
endfunction()

function(capstan_mpi_test name source)
  if(NOT CAPSTAN_BUILD_JOB_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "LAYER;TIMEOUT" "RANKS;USES;LINK" ${ARGN})
  list(TRANSFORM arg_USES PREPEND capstan_)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  capstan_test_target(${name} "${source}" ${arg_LAYER})
  set(targets ${name})
  add_dependencies(short_tests ${name})
  if(CAPSTAN_MPICH_FOUND)
    string(REGEX REPLACE "^mpi$" "mpi_mpich" layer ${arg_LAYER})
    capstan_test_target(${name}_mpich "${source}" ${layer})
    set_target_properties(${name}_mpich PROPERTIES CAPSTAN_WITH_MPICH ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mpich/bin)
    list(APPEND targets ${name}_mpich)
  endif()
  foreach(target IN LISTS targets)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/mpi_main.cpp)
    target_link_libraries(${target} PRIVATE ${arg_USES} ${arg_LINK} GTest::gmock GTest::gtest)
  endforeach()
  foreach(ranks IN LISTS arg_RANKS)
    set(test ${arg_LAYER}.${name}.np${ranks})
    add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
             ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${name}> ${MPIEXEC_POSTFLAGS})
    set(tests ${test})
    if(CAPSTAN_MPICH_FOUND)
      add_test(NAME ${test}.mpich COMMAND ${CAPSTAN_MPICH_MPIEXEC} -n ${ranks} $<TARGET_FILE:${name}_mpich>)
      list(APPEND tests ${test}.mpich)
    else()
      capstan_skip_mpich(${test} ${arg_LAYER})
    endif()
    set_tests_properties(${tests} PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS 2 LABELS "mpi;${arg_LAYER}"
                         ENVIRONMENT "CAPSTAN_TESTS_RANKS=${ranks};${CAPSTAN_MPI_ENV}")
    if(CAPSTAN_MPICH_FOUND)
      set_property(TEST ${test}.mpich APPEND PROPERTY LABELS full)
    endif()
  endforeach()
endfunction()

# A script based on tests/support/job.py that starts real ranks and checks their results.
function(capstan_job_test group name script)
  cmake_parse_arguments(arg "WAITS;FULL" "TIMEOUT;COST" "ARGS;MPICH;SHORT" ${ARGN})
  set(processors 2)
  if(arg_WAITS)
    set(processors 1)
  endif()
  set(test ${group}.${name})
  set(command ${CAPSTAN_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/${script})
  set(with_open_mpi ${command} ${PROJECT_BINARY_DIR}/bin ${MPIEXEC_EXECUTABLE} ${arg_ARGS})
  add_test(NAME ${test} COMMAND ${with_open_mpi})
  set(tests ${test})
  set(full)
  if(arg_FULL OR arg_SHORT)
    set(full ${test})
  endif()
  if(arg_SHORT)
    add_test(NAME ${test}.short COMMAND ${with_open_mpi} ${arg_SHORT})
    list(APPEND tests ${test}.short)
  endif()
  if(arg_MPICH AND CAPSTAN_MPICH_FOUND)
    add_test(NAME ${test}.mpich COMMAND ${command} ${PROJECT_BINARY_DIR}/mpich/bin ${CAPSTAN_MPICH_MPIEXEC} ${arg_ARGS} ${arg_MPICH})
    list(APPEND tests ${test}.mpich)
    list(APPEND full ${test}.mpich)
  elseif(arg_MPICH)
    capstan_skip_mpich(${test} ${group})
  endif()
  set_tests_properties(${tests} PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${processors} LABELS "mpi;${group}")
  if(arg_COST)
    set_tests_properties(${test} PROPERTIES COST ${arg_COST})
  endif()
  if(full)
    set_property(TEST ${full} APPEND PROPERTY LABELS full)
  endif()
  if(arg_SHORT)
    set_property(TEST ${test}.short APPEND PROPERTY LABELS short)
  endif()
endfunction()
