# What `cmake --install` writes besides the program: headers, one static library per layer, and two ways to find them:
# find_package(capstan), or Capstan, with the target capstan::capstan, and pkg-config capstan.
#
# The layers are static, so whatever they link privately has to be found again by whoever links them. The list is
# read off the targets, and a dependency that an outside project would not find stops the configure here.
include(CMakePackageConfigHelpers)

get_property(capstan_layers GLOBAL PROPERTY CAPSTAN_LAYERS)

# In-tree users link capstan::capstan too. The target's own name leaves `capstan` to the program, which launch/ installs.
add_library(capstan_all INTERFACE)
add_library(capstan::capstan ALIAS capstan_all)
set_target_properties(capstan_all PROPERTIES EXPORT_NAME capstan)
target_link_libraries(capstan_all INTERFACE ${capstan_layers})

# capstan_collect(<layer>): appends the layer to capstan_link_order after all that it links, and what is not a
# layer to capstan_outside.
function(capstan_collect target)
  if(target IN_LIST capstan_link_order)
    return()
  endif()
  get_target_property(linked ${target} LINK_LIBRARIES)
  foreach(item IN LISTS linked)
    string(REGEX REPLACE "^\\$<INSTALL_INTERFACE:(capstan::.*)>$" "\\1" item "${item}")
    string(REGEX REPLACE "^capstan::" "capstan_" item "${item}")
    if(item IN_LIST capstan_layers)
      capstan_collect(${item})
    elseif(item AND NOT item MATCHES "^\\$<BUILD_INTERFACE:")
      list(APPEND capstan_outside ${item})
    endif()
  endforeach()
  list(APPEND capstan_link_order ${target})
  set(capstan_link_order ${capstan_link_order} PARENT_SCOPE)
  set(capstan_outside ${capstan_outside} PARENT_SCOPE)
endfunction()

set(capstan_link_order)
set(capstan_outside)
foreach(layer IN LISTS capstan_layers)
  capstan_collect(${layer})
endforeach()
list(REMOVE_DUPLICATES capstan_outside)

# How an outside project finds what the layers link.
set(CAPSTAN_FIND_CALLS "")
set(CAPSTAN_PC_REQUIRES "")
set(CAPSTAN_PC_LIBS "")
foreach(item IN LISTS capstan_outside)
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
  elseif(item MATCHES "^(CLI11|nlohmann_json|tomlplusplus)::")
    set(call "find_dependency(${CMAKE_MATCH_1})")  # headers that only sources of ours include
  elseif(item STREQUAL "CUDA::cudart_static")
    set(call "find_dependency(CUDAToolkit)")
    list(APPEND CAPSTAN_PC_LIBS -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl -pthread)
  elseif(item STREQUAL "Eigen3::Eigen")
    set(call "find_dependency(Eigen3)")
  elseif(item STREQUAL "Threads::Threads")
    set(call "find_dependency(Threads)")
    list(APPEND CAPSTAN_PC_LIBS -pthread)
  elseif(item MATCHES "^(dl|m|rt|util|atomic)$" OR item MATCHES "^-")
    list(APPEND CAPSTAN_PC_LIBS "${item}")
  elseif(item STREQUAL "\${CMAKE_DL_LIBS}" OR IS_ABSOLUTE "${item}")
    list(APPEND CAPSTAN_PC_LIBS "${item}")
  else()
    message(FATAL_ERROR "A layer links '${item}': say in cmake/CapstanInstall.cmake how an outside project finds it")
  endif()
  if(call)
    string(APPEND CAPSTAN_FIND_CALLS "${call}\n")
  endif()
endforeach()

# pkg-config: the highest layer comes first on a link line; a plain name becomes -lname.
list(REVERSE capstan_link_order)
list(TRANSFORM capstan_link_order PREPEND "-l" OUTPUT_VARIABLE capstan_pc_layers)
list(REMOVE_DUPLICATES CAPSTAN_PC_LIBS)
list(TRANSFORM CAPSTAN_PC_LIBS REPLACE "^([a-z]+)$" "-l\\1")
list(JOIN CAPSTAN_PC_REQUIRES ", " CAPSTAN_PC_REQUIRES)
list(JOIN CAPSTAN_PC_LIBS " " CAPSTAN_PC_LIBS)
list(JOIN capstan_pc_layers " " CAPSTAN_PC_LAYERS)
string(REGEX REPLACE "[^/]+" ".." CAPSTAN_PC_PREFIX "${CMAKE_INSTALL_LIBDIR}/pkgconfig")  # "../.." or deeper
configure_file(cmake/capstan.pc.in ${PROJECT_BINARY_DIR}/capstan.pc @ONLY)

set(CAPSTAN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/capstan)
# CMake tries NAMEConfig.cmake as it is written and name-config.cmake in lower case, so this name serves
# find_package(capstan) and find_package(Capstan).
configure_package_config_file(cmake/capstan-config.cmake.in ${PROJECT_BINARY_DIR}/capstan-config.cmake
                              INSTALL_DESTINATION ${CAPSTAN_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/capstan-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS capstan_all ${capstan_layers} EXPORT capstanTargets)
install(EXPORT capstanTargets NAMESPACE capstan:: DESTINATION ${CAPSTAN_PACKAGE_DIR})
install(FILES ${PROJECT_BINARY_DIR}/capstan-config.cmake ${PROJECT_BINARY_DIR}/capstan-config-version.cmake
        DESTINATION ${CAPSTAN_PACKAGE_DIR})
install(FILES ${PROJECT_BINARY_DIR}/capstan.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY include/capstan DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
