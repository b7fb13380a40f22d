# SPDX-License-Identifier: Apache-2.0
# How the processor's backend of the native engine is compiled: its innermost loops
# once for each set of vector instructions, always with optimisation, and with
# a * b + c rounded once, which is what these instructions do.

set(TD_NATIVE_CPU native/cpu/kernel.c native/cpu/pool.c native/cpu/backend.c
  native/cpu/linear.c native/cpu/norm.c native/cpu/small.c
  native/cpu/attention.c native/cpu/conv.c native/cpu/winograd.c)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND TD_NATIVE_CPU native/cpu/kernel_avx2.c native/cpu/kernel_avx512.c)
endif()

function(td_native_fast file)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/engine/native/cpu/${file}
    PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast;${ARGN}")
endfunction()
td_native_fast(kernel.c)
td_native_fast(kernel_avx2.c -mavx2 -mfma)
td_native_fast(kernel_avx512.c -mavx512f -mprefer-vector-width=512)
td_native_fast(kernel_wide.c -Wno-psabi) # of tests; no vector leaves the file
foreach(file linear.c norm.c small.c attention.c conv.c winograd.c)
  td_native_fast(${file})
endforeach()
