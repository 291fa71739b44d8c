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
  set(all_languages CXX "C CXX")
  set(all_packages Capstan capstan)
  # C++ alone, which is the harder way: MPI and HDF5 are C libraries. Each with one spelling of the name.
  foreach(languages package IN ZIP_LISTS all_languages all_packages)
    string(REPLACE " " "_" folder ${SCRATCH}/${languages})
    run(${CMAKE_COMMAND} -S ${SOURCE} -B ${folder} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX}
        -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DOUTSIDE_LANGUAGES=${languages}
        -DOUTSIDE_PACKAGE=${package} -DOUTSIDE_VERSION=${VERSION})
    run(${CMAKE_COMMAND} --build ${folder})
    run(${folder}/outside)
  endforeach()

elseif(STEP STREQUAL "pkg_config")
  file(MAKE_DIRECTORY ${SCRATCH})
  set(ENV{PKG_CONFIG_PATH} "${PREFIX}/${LIBDIR}/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  run(${PKG_CONFIG} --exact-version=${VERSION} capstan)
  # The command that docs/running.md gives, with this compiler and these files.
  file(STRINGS ${RUNNING_MD} command REGEX "^    c\\+\\+ program\\.cpp .*pkg-config")
  string(REPLACE "c++ program.cpp" "${CXX} ${CXX_FLAGS} ${SOURCE}/main.cpp" command "${command}")
  string(REPLACE "$(pkg-config" "$(${PKG_CONFIG}" command "${command}")
  string(REPLACE "-o program" "-o ${SCRATCH}/outside_pkg_config" command "${command}")
  run(sh -c "${command}")
  run(${SCRATCH}/outside_pkg_config)

else()
  message(FATAL_ERROR "no such step: ${STEP}")
endif()
