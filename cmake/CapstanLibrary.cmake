# capstan::capstan, the library that a program links: libcapstan.so, or with BUILD_SHARED_LIBS=OFF libcapstan.a. Both
# consist of the objects of the layers, so no source is compiled twice. The shared library exports the declarations in
# include/capstan that CAPSTAN_API marks.
#
# Programs of this tree that use the public headers alone link capstan::capstan (examples/, most programs of tests/multi
# and tests/fault). Those that use internals (launch/, perf/, unit tests) link layers. A program that linked both would
# have two copies of every static variable, so the configuration fails for it: CAPSTAN_LINKS.

# The public macros cannot ask CMake for the version.
file(STRINGS include/capstan/version.hpp capstan_macros REGEX "^#define CAPSTAN_VERSION_[A-Z]+ ")
set(capstan_expected "#define CAPSTAN_VERSION_MAJOR ${PROJECT_VERSION_MAJOR}" "#define CAPSTAN_VERSION_MINOR ${PROJECT_VERSION_MINOR}"
    "#define CAPSTAN_VERSION_PATCH ${PROJECT_VERSION_PATCH}" "#define CAPSTAN_VERSION_STRING \"${PROJECT_VERSION}\"")
if(NOT capstan_macros STREQUAL capstan_expected)
  message(FATAL_ERROR "include/capstan/version.hpp: its macros are not those of version ${PROJECT_VERSION} (CMakeLists.txt)")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/capstan/version.hpp)

# CAPSTAN_OUTSIDE: the libraries that the layers link, without each other and without those that are headers alone.
# src/cluster chooses its copy of src/mpi by a generator expression.
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

function(capstan_library target type)
  list(TRANSFORM capstan_library_layers REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(${target} ${type} ${objects})
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
  # The public headers start threads.
  target_link_libraries(${target} PRIVATE ${CAPSTAN_OUTSIDE} INTERFACE Threads::Threads)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME capstan EXPORT_NAME capstan LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    INTERFACE_CAPSTAN_LINKS "the library" COMPATIBLE_INTERFACE_STRING CAPSTAN_LINKS)
endfunction()

if(BUILD_SHARED_LIBS)
  capstan_library(capstan_shared SHARED)
  # Before version 1.0 the minor number is the one that tells of incompatible changes.
  set(capstan_soversion ${PROJECT_VERSION_MAJOR})
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(capstan_soversion 0.${PROJECT_VERSION_MINOR})
  endif()
  set(capstan_map ${PROJECT_SOURCE_DIR}/cmake/libcapstan.map)
  target_link_options(capstan_shared PRIVATE LINKER:--version-script=${capstan_map})
  # The linker of a program looks up what libcapstan.so needs by its run path.
  set_target_properties(capstan_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${capstan_soversion}
                                                  LINK_DEPENDS ${capstan_map} INSTALL_RPATH_USE_LINK_PATH ON)
  add_library(capstan::capstan ALIAS capstan_shared)
endif()

capstan_library(capstan_static STATIC)
if(NOT BUILD_SHARED_LIBS)
  add_library(capstan::capstan ALIAS capstan_static)
elseif(NOT CAPSTAN_BUILD_TESTS OR NOT CAPSTAN_BUILD_JOB_TESTS)
  set_target_properties(capstan_static PROPERTIES EXCLUDE_FROM_ALL ON)  # tests/install installs it
endif()

# For programs that include <mpi.h>; cmake/capstan-config.cmake.in has the same for the installed library. <mpi.h> includes
# MPI's C++ bindings, which need a library of their own, unless told otherwise.
add_library(capstan_and_mpi INTERFACE)
target_link_libraries(capstan_and_mpi INTERFACE capstan::capstan MPI::MPI_C)
target_compile_definitions(capstan_and_mpi INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
add_library(capstan::mpi ALIAS capstan_and_mpi)
