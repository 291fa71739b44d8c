# A second MPI for tests: MPICH next to another MPI. src/mpi is compiled again with MPICH's <mpi.h>, and programs are linked
# again with that copy into mpich/bin; all other objects are shared. A target selects its copy by the property
# CAPSTAN_WITH_MPICH (src/cluster/CMakeLists.txt).
#
# Sets CAPSTAN_MPICH_FOUND, CAPSTAN_MPICH_MPIEXEC and CAPSTAN_MPICH_SUMMARY: the version that was found, or the reason for none.
# capstan_copy_for_mpich()             defines the copy of src/mpi
# capstan_with_mpich(<target> ...)     defines <target>_mpich: the objects of <target>, linked with MPICH's copy of src/mpi
include(CapstanRequest)
capstan_request(CAPSTAN_TESTS_MPICH "Rank tests with MPICH, too" capstan_mpich_request)

set(CAPSTAN_MPICH_FOUND FALSE)
function(capstan_find_mpich)
  if(capstan_mpich_request STREQUAL "OFF")
    set(words "not searched for (CAPSTAN_TESTS_MPICH=OFF)")
  elseif(NOT CAPSTAN_BUILD_TESTS OR NOT CAPSTAN_BUILD_JOB_TESTS)
    set(words "not searched for (no job tests)")
  else()
    include(CheckSymbolExists)
    set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
    check_symbol_exists(MPICH_VERSION mpi.h CAPSTAN_FIRST_MPI_IS_MPICH)
    pkg_check_modules(MPICH QUIET IMPORTED_TARGET GLOBAL mpich)
    find_program(CAPSTAN_MPICH_MPIEXEC NAMES mpirun.mpich mpiexec.mpich mpiexec.hydra HINTS ${MPICH_PREFIX}/bin)
    mark_as_advanced(CAPSTAN_MPICH_MPIEXEC)
    if(CAPSTAN_FIRST_MPI_IS_MPICH)
      set(words "the primary MPI is MPICH")
    elseif(NOT MPICH_FOUND)
      set(words "not found (no mpich.pc)")
    elseif(NOT CAPSTAN_MPICH_MPIEXEC)
      set(words "not found (no mpirun.mpich, mpiexec.mpich or mpiexec.hydra)")
    else()
      set(words "${MPICH_VERSION} (${CAPSTAN_MPICH_MPIEXEC}), for tests")
      set(CAPSTAN_MPICH_FOUND TRUE PARENT_SCOPE)
    endif()
  endif()
  set(CAPSTAN_MPICH_SUMMARY "${words}" PARENT_SCOPE)
endfunction()
capstan_find_mpich()
if(capstan_mpich_request STREQUAL "ON" AND NOT CAPSTAN_MPICH_FOUND)
  message(FATAL_ERROR "CAPSTAN_TESTS_MPICH=ON requires MPICH as a second MPI: ${CAPSTAN_MPICH_SUMMARY}. "
                      "Put its mpich.pc on PKG_CONFIG_PATH and its mpiexec.hydra on PATH, or leave the option at AUTO")
endif()

function(capstan_copy_for_mpich)
  get_target_property(sources capstan_mpi SOURCES)
  add_library(capstan_mpi_mpich STATIC EXCLUDE_FROM_ALL ${sources})
  target_include_directories(capstan_mpi_mpich PUBLIC ${PROJECT_SOURCE_DIR}/include
                                               PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_compile_options(capstan_mpi_mpich PRIVATE ${CAPSTAN_WARNINGS})
  target_compile_definitions(capstan_mpi_mpich PUBLIC MPICH_SKIP_MPICXX=1)
  target_link_libraries(capstan_mpi_mpich PUBLIC capstan_base PkgConfig::MPICH PRIVATE fmt::fmt)
endfunction()

function(capstan_with_mpich)
  foreach(target IN LISTS ARGN)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    add_executable(${target}_mpich $<TARGET_OBJECTS:${target}>)
    target_link_libraries(${target}_mpich PRIVATE ${libraries})
    set_target_properties(${target}_mpich PROPERTIES CAPSTAN_WITH_MPICH ON LINKER_LANGUAGE CXX
      OUTPUT_NAME $<TARGET_FILE_BASE_NAME:${target}> RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mpich/bin)
  endforeach()
endfunction()
