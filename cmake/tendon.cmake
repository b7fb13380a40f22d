# SPDX-License-Identifier: Apache-2.0
# td_module, td_test and td_fuzz: how the root file speaks of the house.

set(TD_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
option(TD_FUZZ "Build the libFuzzer targets (clang)" OFF)

add_library(td_options INTERFACE)
target_include_directories(td_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(td_options INTERFACE _GNU_SOURCE)
target_compile_options(td_options INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
  -Wcast-qual -Wpointer-arith -Wwrite-strings -Wimplicit-fallthrough
  -fno-omit-frame-pointer -fno-semantic-interposition
  # docs/merge.md promises bits: a * b + c is rounded twice on every machine.
  -ffp-contract=off)
if(TD_SANITIZE)
  target_compile_options(td_options INTERFACE
    -fsanitize=${TD_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(td_options INTERFACE -fsanitize=${TD_SANITIZE})
  # libgcc's atomics and cmocka's setjmp are fine; TSan only lacks fences.
  if(TD_SANITIZE STREQUAL "thread")
    target_compile_options(td_options INTERFACE -Wno-tsan)
  endif()
endif()
if(TD_FUZZ)
  target_compile_options(td_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# td_module(name SOURCES a.c b.c [DEPS modules] [LIBS libraries])
# A static library td_<name> of files under src/<name>/. DEPS is the "may use"
# column of ARCHITECTURE.md.
function(td_module name)
  cmake_parse_arguments(M "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  list(TRANSFORM M_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/${name}/)
  list(TRANSFORM M_DEPS PREPEND td_)
  add_library(td_${name} STATIC ${M_SOURCES})
  target_link_libraries(td_${name} PUBLIC td_options ${M_DEPS} ${M_LIBS})
endfunction()

# td_test(module name [SOURCES extra.c] [DEPS modules] [LABELS labels])
# A cmocka program from src/<module>/<name>_test.c, beside the code.
function(td_test module name)
  cmake_parse_arguments(T "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  string(REPLACE "/" "_" target ${module}_${name}_test)
  list(TRANSFORM T_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/${module}/)
  list(TRANSFORM T_DEPS PREPEND td_)
  add_executable(${target}
    ${PROJECT_SOURCE_DIR}/src/${module}/${name}_test.c ${T_SOURCES})
  target_link_libraries(${target} PRIVATE td_${module} ${T_DEPS} cmocka)
  target_compile_definitions(${target} PRIVATE
    TD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${module}/${name} COMMAND ${target})
  set_tests_properties(${module}/${name} PROPERTIES
    LABELS "unit;${T_LABELS}" TIMEOUT 300)
endfunction()

# td_fuzz(name DEPS modules): fuzz/<name>.c as a libFuzzer target with the fuzz
# preset, and otherwise as a test that replays fuzz/seeds/<name>/.
function(td_fuzz name)
  cmake_parse_arguments(F "" "" "DEPS" ${ARGN})
  list(TRANSFORM F_DEPS PREPEND td_)
  if(TD_FUZZ)
    add_executable(fuzz_${name} ${PROJECT_SOURCE_DIR}/fuzz/${name}.c)
    # What is loaded later finds libFuzzer in the program.
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer -rdynamic)
  else()
    add_executable(fuzz_${name} ${PROJECT_SOURCE_DIR}/fuzz/${name}.c
      ${PROJECT_SOURCE_DIR}/fuzz/replay.c)
    add_test(NAME fuzz/${name}
      COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/fuzz/seeds/${name})
    set_tests_properties(fuzz/${name} PROPERTIES LABELS "unit;fuzz" TIMEOUT 300)
  endif()
  target_link_libraries(fuzz_${name} PRIVATE ${F_DEPS})
endfunction()

# msgpack-c goes by another name from version 6 on.
find_library(TD_MSGPACK NAMES msgpackc msgpack-c REQUIRED)
add_library(msgpackc UNKNOWN IMPORTED GLOBAL)
set_target_properties(msgpackc PROPERTIES IMPORTED_LOCATION ${TD_MSGPACK})

# The Rust crate: one static library, always a release build, shared by every
# preset (sanitizers do not see into it anyway).
set(TD_RUST_DIR ${PROJECT_SOURCE_DIR}/build/rust CACHE PATH "cargo's target folder")
set(TD_RUST_LIB ${TD_RUST_DIR}/release/libtendon_rust.a)
set(TD_CARGO ${PROJECT_SOURCE_DIR}/tools/cargo)
file(GLOB_RECURSE TD_RUST_SOURCES CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/rust/src/*.rs)
add_custom_command(OUTPUT ${TD_RUST_LIB}
  COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${TD_RUST_DIR}
          ${TD_CARGO} build --release --locked
          --manifest-path ${PROJECT_SOURCE_DIR}/rust/Cargo.toml
  COMMAND ${CMAKE_COMMAND} -E touch_nocreate ${TD_RUST_LIB}
  DEPENDS ${TD_RUST_SOURCES} ${PROJECT_SOURCE_DIR}/rust/Cargo.toml
          ${PROJECT_SOURCE_DIR}/rust/Cargo.lock
  USES_TERMINAL VERBATIM COMMENT "cargo build (minutes the first time)")
add_custom_target(td_rust_build DEPENDS ${TD_RUST_LIB})
add_library(td_rust STATIC IMPORTED GLOBAL)
set_target_properties(td_rust PROPERTIES
  IMPORTED_LOCATION ${TD_RUST_LIB}
  INTERFACE_INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/rust/include
  INTERFACE_LINK_LIBRARIES "pthread;dl;m"
  # One of its objects is assembly that does not say so itself.
  INTERFACE_LINK_OPTIONS "-Wl,-z,noexecstack")
add_dependencies(td_rust td_rust_build)
