# Defines capstan::capstan, the library that a program links: libcapstan.so, or libcapstan.a with BUILD_SHARED_LIBS=OFF. Both
# consist of the objects of the layers, so no source is compiled twice. The shared library exports the declarations in
# include/capstan that CAPSTAN_API marks.
#
# Programs of this tree that use the public headers only (examples/, most programs of tests/multi and tests/fault) link
# capstan::capstan. Programs that use internals (launch/, perf/, unit tests) link layers. A program that linked both would
# have two copies of every static variable; the property CAPSTAN_LINKS makes its configuration fail.

# Macros in a public header cannot take the version from CMake, so the two are compared here.
file(STRINGS include/capstan/version.hpp capstan_macros REGEX "^#define CAPSTAN_VERSION_[A-Z]+ ")
set(capstan_expected "#define CAPSTAN_VERSION_MAJOR ${PROJECT_VERSION_MAJOR}" "#define CAPSTAN_VERSION_MINOR ${PROJECT_VERSION_MINOR}"
    "#define CAPSTAN_VERSION_PATCH ${PROJECT_VERSION_PATCH}" "#define CAPSTAN_VERSION_STRING \"${PROJECT_VERSION}\"")
if(NOT capstan_macros STREQUAL capstan_expected)
  message(FATAL_ERROR "include/capstan/version.hpp: the macros differ from version ${PROJECT_VERSION} in CMakeLists.txt; make them equal")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/capstan/version.hpp)

# CAPSTAN_OUTSIDE: the external libraries that the layers link, without header-only ones. Generator expressions are skipped,
# such as the one by which src/cluster selects its copy of src/mpi.
get_property(capstan_library_layers GLOBAL PROPERTY CAPSTAN_LIBRARY_LAYERS)
set(CAPSTAN_OUTSIDE)
foreach(layer IN LISTS capstan_library_layers)
  get_target_property(linked ${layer} LINK_LIBRARIES)
  foreach(item IN LISTS linked)
    if(item AND NOT item IN_LIST capstan_library_layers AND NOT item MATCHES "^\\$<|^(CLI11|nlohmann_json|tomlplusplus)::")
      list(APPEND CAPSTAN_OUTSIDE ${item})
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES CAPSTAN_OUTSIDE)

# build_info() is in no layer: its source changes with each commit, and all tests would be linked again.
include(CapstanCommit)
string(TOUPPER "${CMAKE_BUILD_TYPE}" capstan_type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${capstan_type}}" CAPSTAN_COMPILE_OPTIONS)
set(CAPSTAN_CMAKE_OPTIONS "BUILD_SHARED_LIBS=${BUILD_SHARED_LIBS} CAPSTAN_CUDA=${CAPSTAN_CUDA} CAPSTAN_BUILD_PYTHON=${CAPSTAN_BUILD_PYTHON}")
configure_file(src/build_info.cpp.in ${PROJECT_BINARY_DIR}/src/build_info.cpp @ONLY)
add_library(capstan_build_info OBJECT ${PROJECT_BINARY_DIR}/src/build_info.cpp)
target_include_directories(capstan_build_info PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(capstan_build_info PRIVATE CAPSTAN_BUILD_TYPE="$<CONFIG>")
set_target_properties(capstan_build_info PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)

function(capstan_library target type)
  list(TRANSFORM capstan_library_layers REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(${target} ${type} ${objects} $<TARGET_OBJECTS:capstan_build_info>)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
  # The public headers use std::thread.
  target_link_libraries(${target} PRIVATE ${CAPSTAN_OUTSIDE} INTERFACE Threads::Threads)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME capstan EXPORT_NAME capstan LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    INTERFACE_CAPSTAN_LINKS "the library" COMPATIBLE_INTERFACE_STRING CAPSTAN_LINKS)
endfunction()

if(BUILD_SHARED_LIBS)
  capstan_library(capstan_shared SHARED)
  # Before version 1.0, a new minor version may be incompatible.
  set(capstan_soversion ${PROJECT_VERSION_MAJOR})
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(capstan_soversion 0.${PROJECT_VERSION_MINOR})
  endif()
  set(capstan_map ${PROJECT_SOURCE_DIR}/cmake/libcapstan.map)
  target_link_options(capstan_shared PRIVATE LINKER:--version-script=${capstan_map})
  # At link time of a program, the linker finds the dependencies of libcapstan.so by its run path.
  set_target_properties(capstan_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${capstan_soversion}
                                                  LINK_DEPENDS ${capstan_map} INSTALL_RPATH_USE_LINK_PATH ON)
  add_library(capstan::capstan ALIAS capstan_shared)
endif()

capstan_library(capstan_static STATIC)
if(NOT BUILD_SHARED_LIBS)
  add_library(capstan::capstan ALIAS capstan_static)
elseif(NOT CAPSTAN_BUILD_TESTS OR NOT CAPSTAN_BUILD_JOB_TESTS)
  set_target_properties(capstan_static PROPERTIES EXCLUDE_FROM_ALL ON)  # otherwise tests/install needs it
endif()

# For programs that include <mpi.h>; cmake/capstan-config.cmake.in defines the same target for the installed library. The two
# macros keep <mpi.h> from including MPI's C++ bindings, which need another library.
add_library(capstan_and_mpi INTERFACE)
target_link_libraries(capstan_and_mpi INTERFACE capstan::capstan MPI::MPI_C)
target_compile_definitions(capstan_and_mpi INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
add_library(capstan::mpi ALIAS capstan_and_mpi)
