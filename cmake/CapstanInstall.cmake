# Installs the headers, the library and two ways to find it: find_package(Capstan) or find_package(capstan), which define the
# target capstan::capstan, and `pkg-config capstan`.
#
# With BUILD_SHARED_LIBS=ON, the default installation omits the static library. `cmake --build BUILD --target capstan_static`
# and `cmake --install BUILD --component capstan_static` add it. The headers, which either library needs, are the component
# capstan_development.
#
# A program that links the static library must also link the dependencies of all layers. The list is read from the targets.
# Configuration fails for a dependency for which this file has no rule.
include(CMakePackageConfigHelpers)

set(CAPSTAN_FIND_CALLS "")
set(CAPSTAN_PC_REQUIRES "")
set(CAPSTAN_PC_LIBS "")
foreach(item IN LISTS CAPSTAN_OUTSIDE)
  set(call "")
  if(item MATCHES "^PkgConfig::(.+)$")
    set(prefix ${CMAKE_MATCH_1})
    if(prefix STREQUAL "UCX")
      set(module "ucx >= 1.13")
    else()
      set(module ${${prefix}_MODULE_NAME})
    endif()
    string(REPLACE " " "" cmake_module "${module}")
    set(call "capstan_find_module(${prefix} \"${cmake_module}\")")
    list(APPEND CAPSTAN_PC_REQUIRES "${module}")
  elseif(item MATCHES "^MPI::MPI_(C|CXX)$")
    set(call "capstan_find_mpi(${CMAKE_MATCH_1})")
    list(APPEND CAPSTAN_PC_LIBS ${MPI_${CMAKE_MATCH_1}_LIBRARIES})
  elseif(item MATCHES "^(hdf5::hdf5|HDF5::HDF5)$")
    set(call "capstan_find_hdf5()")
    list(APPEND CAPSTAN_PC_LIBS ${HDF5_C_LIBRARIES})
  elseif(item MATCHES "^(fmt|spdlog)::")
    set(call "find_dependency(${CMAKE_MATCH_1})")
    list(APPEND CAPSTAN_PC_REQUIRES ${CMAKE_MATCH_1})
  elseif(item STREQUAL "CUDA::cudart_static")
    set(call "find_dependency(CUDAToolkit)")
    list(APPEND CAPSTAN_PC_LIBS -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl)
  elseif(item STREQUAL "Eigen3::Eigen")
    set(call "find_dependency(Eigen3)")
  elseif(item STREQUAL "Threads::Threads")
    # Both libraries need it, so capstan-config.cmake.in and capstan.pc.in contain it.
  elseif(item MATCHES "^(dl|m|rt|util|atomic)$" OR item MATCHES "^-")
    list(APPEND CAPSTAN_PC_LIBS "${item}")
  elseif(item STREQUAL "\${CMAKE_DL_LIBS}" OR IS_ABSOLUTE "${item}")
    list(APPEND CAPSTAN_PC_LIBS "${item}")
  else()
    message(FATAL_ERROR "A layer links '${item}': no rule for it in cmake/CapstanInstall.cmake; add how an outside project finds it")
  endif()
  if(call)
    string(APPEND CAPSTAN_FIND_CALLS "  ${call}\n")
  endif()
endforeach()
list(REMOVE_DUPLICATES CAPSTAN_PC_LIBS)
list(TRANSFORM CAPSTAN_PC_LIBS REPLACE "^([a-z]+)$" "-l\\1")  # a plain library name
list(JOIN CAPSTAN_PC_REQUIRES ", " CAPSTAN_PC_REQUIRES)
list(JOIN CAPSTAN_PC_LIBS " " CAPSTAN_PC_LIBS)

set(CAPSTAN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/capstan)
# CMake searches for <Name>Config.cmake and for <lower-case name>-config.cmake, so this file name serves both
# find_package(capstan) and find_package(Capstan).
configure_package_config_file(cmake/capstan-config.cmake.in ${PROJECT_BINARY_DIR}/capstan-config.cmake
                              INSTALL_DESTINATION ${CAPSTAN_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/capstan-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/capstan-config.cmake ${PROJECT_BINARY_DIR}/capstan-config-version.cmake
        DESTINATION ${CAPSTAN_PACKAGE_DIR} COMPONENT capstan_development)
install(DIRECTORY include/capstan DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT capstan_development
        FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT capstan_development)

string(REGEX REPLACE "[^/]+" ".." CAPSTAN_PC_PREFIX "${CMAKE_INSTALL_LIBDIR}/pkgconfig")  # path from the .pc file to the prefix, such as "../.."
# capstan_install(<kind> <library> [EXCLUDE_FROM_ALL]): installs the library of this kind, its targets and its .pc file.
function(capstan_install kind library)
  install(TARGETS capstan_${kind} EXPORT capstan_${kind}_targets COMPONENT capstan_${kind} ${ARGN})
  install(EXPORT capstan_${kind}_targets NAMESPACE capstan:: FILE capstan-${kind}-targets.cmake DESTINATION ${CAPSTAN_PACKAGE_DIR}
          COMPONENT capstan_${kind} ${ARGN})
  set(CAPSTAN_PC_LIBRARY ${library})
  if(kind STREQUAL "shared")
    set(CAPSTAN_PC_REQUIRES "")
    set(CAPSTAN_PC_LIBS "")
  endif()
  set(file ${PROJECT_BINARY_DIR}/capstan-${kind}.pc)
  configure_file(cmake/capstan.pc.in ${file} @ONLY)
  if(kind STREQUAL "static")
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT capstan_static ${ARGN})
  endif()
  if(NOT ARGN)
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig RENAME capstan.pc COMPONENT capstan_${kind})
  endif()
endfunction()
if(BUILD_SHARED_LIBS)
  capstan_install(shared "-L\${libdir} -lcapstan")
  capstan_install(static "\${libdir}/libcapstan.a" EXCLUDE_FROM_ALL)
else()
  capstan_install(static "\${libdir}/libcapstan.a")
endif()
