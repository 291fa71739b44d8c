# CAPSTAN_PYTHON: the interpreter that runs the test scripts. If several are installed, one with h5py is preferred: without
# h5py, the tests that read checkpoints skip with a reason.
if(NOT CAPSTAN_PYTHON)
  find_program(capstan_first_python NAMES python3 NO_CACHE)
  foreach(candidate ${capstan_first_python} /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import h5py" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed EQUAL 0)
      set(CAPSTAN_PYTHON ${candidate} CACHE FILEPATH "Python 3 for the tests' scripts")
      break()
    endif()
  endforeach()
endif()
if(NOT CAPSTAN_PYTHON AND capstan_first_python)
  set(CAPSTAN_PYTHON ${capstan_first_python})  # not cached, since h5py may be installed before the next configuration
elseif(NOT CAPSTAN_PYTHON)
  message(FATAL_ERROR "The tests need python3. Install it, or configure with -DCAPSTAN_BUILD_TESTS=OFF")
endif()
