# One step of the install test: cmake -DSTEP=install|find_package|pkg_config ... -P run_step.cmake
function(run)
  list(JOIN ARGV " " words)
  message("+ ${words}")
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(STEP STREQUAL "install")
  file(REMOVE_RECURSE ${PREFIX} ${SCRATCH})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
  if(EXISTS ${PREFIX}/bin/capstan)
    run(${PREFIX}/bin/capstan --version)
  endif()

elseif(STEP STREQUAL "find_package")
  # C++ alone, which is the harder way: MPI and HDF5 are C libraries.
  foreach(languages CXX "C CXX")
    string(REPLACE " " "_" folder ${SCRATCH}/${languages})
    run(${CMAKE_COMMAND} -S ${SOURCE} -B ${folder} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX}
        -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DOUTSIDE_LANGUAGES=${languages}
        -DOUTSIDE_VERSION=${VERSION})
    run(${CMAKE_COMMAND} --build ${folder})
    run(${folder}/outside)
  endforeach()

elseif(STEP STREQUAL "pkg_config")
  file(MAKE_DIRECTORY ${SCRATCH})
  set(ENV{PKG_CONFIG_PATH} "${PREFIX}/${LIBDIR}/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  run(${PKG_CONFIG} --exact-version=${VERSION} capstan)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs capstan OUTPUT_VARIABLE flags
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${CXX_FLAGS} ${flags}")
  run(${CXX} ${SOURCE}/main.cpp ${flags} -o ${SCRATCH}/outside_pkg_config)
  run(${SCRATCH}/outside_pkg_config)

else()
  message(FATAL_ERROR "no such step: ${STEP}")
endif()
