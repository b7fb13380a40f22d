# SPDX-License-Identifier: Apache-2.0
# libtendon_cuda.so: the CUDA backend of engine/native, made wherever there is an
# nvcc (`tools/setup --cuda`, or the system's) and loaded where there is a GPU.
# Always optimised, in one folder for all presets; sanitizers do not see into it,
# so theirs do not make it again.

include(GNUInstallDirs)

find_program(TD_NVCC nvcc
  HINTS ${PROJECT_SOURCE_DIR}/build/cuda/bin PATHS /usr/local/cuda/bin)
set(TD_CUDA_OUT ${PROJECT_SOURCE_DIR}/build/cuda-out)
set(TD_CUDA_LIBRARY ${TD_CUDA_OUT}/libtendon_cuda.so)
set(TD_CUDA_FLAGS
  -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Werror all-warnings
  -Xcompiler -Wall,-Wextra,-fPIC,-fvisibility=hidden
  -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include)

# td_cuda_library(a.cu b.cu): of files under src/engine/native/cuda/, and of
# base/err.c, so that it needs nothing of the program that loads it.
function(td_cuda_library)
  if(TD_SANITIZE OR TD_FUZZ)
    return()
  elseif(NOT TD_NVCC)
    message(STATUS "No nvcc: the CUDA engine is left out (tools/setup --cuda)")
    return()
  endif()
  file(MAKE_DIRECTORY ${TD_CUDA_OUT})
  set(objects)
  foreach(name ${ARGN})
    set(object ${TD_CUDA_OUT}/${name}.o)
    set(source ${PROJECT_SOURCE_DIR}/src/engine/native/cuda/${name})
    add_custom_command(OUTPUT ${object}
      COMMAND ${TD_NVCC} ${TD_CUDA_FLAGS} -MD -MF ${object}.d -c ${source}
              -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d
      VERBATIM COMMENT "nvcc ${name}")
    list(APPEND objects ${object})
  endforeach()
  set(errors ${PROJECT_SOURCE_DIR}/src/base/err.c)
  # A wheel has its libraries where nvcc does not look.
  cmake_path(GET TD_NVCC PARENT_PATH bin)
  add_custom_command(OUTPUT ${TD_CUDA_LIBRARY}
    COMMAND ${TD_NVCC} ${TD_CUDA_FLAGS} -D_GNU_SOURCE -shared -cudart static
            -L${bin}/../lib -Xcompiler -static-libgcc,-static-libstdc++
            -Xlinker --no-undefined -o ${TD_CUDA_LIBRARY} ${objects} ${errors}
    # Where programs of this preset find it: beside themselves.
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${TD_CUDA_LIBRARY}
            ${PROJECT_BINARY_DIR}/libtendon_cuda.so
    DEPENDS ${objects} ${errors}
    VERBATIM COMMENT "nvcc libtendon_cuda.so")
  add_custom_target(tendon_cuda ALL DEPENDS ${TD_CUDA_LIBRARY})
  install(FILES ${TD_CUDA_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
endfunction()
