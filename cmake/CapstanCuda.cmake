# Finds CUDA and NCCL, both optional. Sets CAPSTAN_CUDA_FOUND, with the targets CUDA::cudart*, and CAPSTAN_NCCL_FOUND, with
# CAPSTAN_NCCL_INCLUDE_DIR and CAPSTAN_NCCL_LIBRARY. Also sets the texts CAPSTAN_CUDA_SUMMARY and CAPSTAN_NCCL_SUMMARY for
# CapstanSummary.cmake. NCCL is searched for next to CUDA and under NCCL_HOME; it is loaded at run time, not linked. A
# single GPU per worker needs no NCCL, so CAPSTAN_CUDA=ON requires only CUDA.
include(CapstanRequest)
capstan_request(CAPSTAN_CUDA "CUDA" capstan_cuda_request)

set(CAPSTAN_CUDA_FOUND FALSE)
set(CAPSTAN_NCCL_FOUND FALSE)
if(capstan_cuda_request STREQUAL "OFF")
  set(CAPSTAN_CUDA_SUMMARY "not searched for (CAPSTAN_CUDA=OFF)")
  set(CAPSTAN_NCCL_SUMMARY "${CAPSTAN_CUDA_SUMMARY}")
  return()
endif()

find_package(CUDAToolkit QUIET)
if(NOT CUDAToolkit_FOUND)
  if(capstan_cuda_request STREQUAL "ON")
    message(FATAL_ERROR "CAPSTAN_CUDA=ON, but no CUDA toolkit was found. Put nvcc on PATH, or pass "
                        "-DCUDAToolkit_ROOT=DIR, or build without CUDA: -DCAPSTAN_CUDA=AUTO")
  endif()
  set(CAPSTAN_CUDA_SUMMARY "not found")
  set(CAPSTAN_NCCL_SUMMARY "not searched for (no CUDA)")
  return()
endif()

# Machine code for the A100 and the H100, and PTX that the driver of a later GPU compiles.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  if(DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES $ENV{CUDAARCHS})
  endif()
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(capstan_cuda_request STREQUAL "ON")
    message(FATAL_ERROR "CAPSTAN_CUDA=ON, and the CUDA toolkit is at ${CUDAToolkit_BIN_DIR}, but its nvcc does not work "
                        "with ${CMAKE_CXX_COMPILER}. Pass -DCMAKE_CUDA_HOST_COMPILER=PATH of a compiler that nvcc supports")
  endif()
  set(CAPSTAN_CUDA_SUMMARY "${CUDAToolkit_VERSION} (${CUDAToolkit_BIN_DIR}), but its nvcc does not work")
  set(CAPSTAN_NCCL_SUMMARY "not searched for (no CUDA)")
  return()
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know that nvcc 12 and later accept -std=c++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
endif()
set(CAPSTAN_CUDA_FOUND TRUE)
list(JOIN CMAKE_CUDA_ARCHITECTURES ", " capstan_cuda_architectures)
set(CAPSTAN_CUDA_SUMMARY "${CUDAToolkit_VERSION} (${CMAKE_CUDA_COMPILER}), for ${capstan_cuda_architectures}")

find_path(CAPSTAN_NCCL_INCLUDE_DIR nccl.h HINTS $ENV{NCCL_HOME}/include ${CUDAToolkit_INCLUDE_DIRS})
find_library(CAPSTAN_NCCL_LIBRARY nccl
             HINTS $ENV{NCCL_HOME}/lib ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_BIN_DIR}/../lib)
mark_as_advanced(CAPSTAN_NCCL_INCLUDE_DIR CAPSTAN_NCCL_LIBRARY)
if(CAPSTAN_NCCL_INCLUDE_DIR AND CAPSTAN_NCCL_LIBRARY)
  set(CAPSTAN_NCCL_FOUND TRUE)
  set(CAPSTAN_NCCL_SUMMARY "${CAPSTAN_NCCL_LIBRARY}")
else()
  set(CAPSTAN_NCCL_SUMMARY "not found")
endif()
