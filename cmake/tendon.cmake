# SPDX-License-Identifier: Apache-2.0
# td_module, td_sources, td_test and td_fuzz: what the build files of
# the modules are written in.

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
  # A section each, so that a linker leaves out what nobody calls.
  -ffunction-sections -fdata-sections
  # docs/merge.md promises bits: a * b + c is rounded twice on every machine.
  -ffp-contract=off)
target_link_options(td_options INTERFACE -Wl,--gc-sections)
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
# Every test takes in the Rust library, which mold does in a tenth of the time.
# What users run is linked as their distribution links.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  include(CheckLinkerFlag)
  check_linker_flag(C -fuse-ld=mold TD_MOLD)
  if(TD_MOLD)
    target_link_options(td_options INTERFACE -fuse-ld=mold)
  endif()
endif()

# What is computed takes ten times as long under a sanitizer.
set(TD_TEST_LIMIT_S 300)
if(TD_SANITIZE)
  set(TD_TEST_LIMIT_S 900)
endif()

# The programs that ctest runs, with what they need, and nothing else.
add_custom_target(unit)

# td_module(name [DEPS modules]): the folder src/<name>/, whose CMakeLists.txt
# says what it is made of and how it is tested. DEPS is the "may use" column of
# ARCHITECTURE.md.
function(td_module name)
  cmake_parse_arguments(M "" "" "DEPS" ${ARGN})
  list(TRANSFORM M_DEPS PREPEND td_)
  set(TD_MODULE ${name})
  set(TD_MODULE_DEPS ${M_DEPS})
  add_subdirectory(${PROJECT_SOURCE_DIR}/src/${name})
endfunction()

# What follows is for a module's own CMakeLists.txt.

# td_sources(a.c b.c [LIBS libraries] [LOADS targets]): the static library
# td_<module>. LOADS are libraries that it loads when it needs them: tests are
# built with them, and `tendon` without.
function(td_sources)
  cmake_parse_arguments(S "" "" "LIBS;LOADS" ${ARGN})
  add_library(td_${TD_MODULE} STATIC ${S_UNPARSED_ARGUMENTS})
  target_link_libraries(td_${TD_MODULE} PUBLIC
    td_options ${TD_MODULE_DEPS} ${S_LIBS})
  foreach(module ${TD_MODULE_DEPS})
    get_target_property(loads ${module} TD_LOADS)
    list(APPEND S_LOADS ${loads})
  endforeach()
  set_target_properties(td_${TD_MODULE} PROPERTIES TD_LOADS "${S_LOADS}")
endfunction()

# td_with_loads(target modules): builds with it what these modules load.
function(td_with_loads target)
  foreach(module ${ARGN})
    get_target_property(loads ${module} TD_LOADS)
    if(loads)
      add_dependencies(${target} ${loads})
    endif()
  endforeach()
endfunction()

# td_test(name [SOURCES extra.c] [DEPS modules] [LABELS labels]): a cmocka
# program from <name>_test.c, beside the code.
function(td_test name)
  cmake_parse_arguments(T "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  string(REPLACE "/" "_" target ${TD_MODULE}_${name}_test)
  list(TRANSFORM T_DEPS PREPEND td_)
  add_executable(${target} ${name}_test.c ${T_SOURCES})
  target_link_libraries(${target} PRIVATE td_${TD_MODULE} ${T_DEPS} cmocka)
  target_include_directories(${target} BEFORE PRIVATE
                             ${PROJECT_SOURCE_DIR}/tests/include)
  td_with_loads(${target} td_${TD_MODULE} ${T_DEPS})
  target_compile_definitions(${target} PRIVATE
    TD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_dependencies(unit ${target})
  add_test(NAME ${TD_MODULE}/${name} COMMAND ${target})
  set_tests_properties(${TD_MODULE}/${name} PROPERTIES
    LABELS "unit;${T_LABELS}" TIMEOUT ${TD_TEST_LIMIT_S})
endfunction()

# td_tests(names [as td_test]): several alike.
function(td_tests)
  cmake_parse_arguments(T "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  foreach(name ${T_UNPARSED_ARGUMENTS})
    td_test(${name} SOURCES ${T_SOURCES} DEPS ${T_DEPS} LABELS ${T_LABELS})
  endforeach()
endfunction()

# td_fuzz(names): each fuzz/<name>.c as a libFuzzer target with the fuzz preset,
# and otherwise as a test that replays fuzz/seeds/<name>/.
function(td_fuzz)
  foreach(name ${ARGN})
    set(source ${PROJECT_SOURCE_DIR}/fuzz/${name}.c)
    if(TD_FUZZ)
      add_executable(fuzz_${name} ${source})
      # What is loaded later finds libFuzzer in the program.
      target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer -rdynamic)
    else()
      add_executable(fuzz_${name} ${source} ${PROJECT_SOURCE_DIR}/fuzz/replay.c)
      add_dependencies(unit fuzz_${name})
      add_test(NAME fuzz/${name}
        COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/fuzz/seeds/${name})
      set_tests_properties(fuzz/${name} PROPERTIES LABELS "unit;fuzz"
        TIMEOUT 300)
    endif()
    target_link_libraries(fuzz_${name} PRIVATE td_${TD_MODULE})
    td_with_loads(fuzz_${name} td_${TD_MODULE})
  endforeach()
endfunction()

# td_ship(target): what users get has no symbols; in a release build they lie
# beside it in <file>.debug, where gdb, perf and abidw find them by themselves. So
# the program that is tried here is the one that is installed.
function(td_ship target)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    return()
  endif()
  set(file $<TARGET_FILE:${target}>)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_OBJCOPY} --only-keep-debug ${file} ${file}.debug
    COMMAND ${CMAKE_OBJCOPY} --strip-unneeded --add-gnu-debuglink=${file}.debug
            ${file}
    VERBATIM)
endfunction()

# msgpack-c goes by another name from version 6 on.
find_library(TD_MSGPACK NAMES msgpackc msgpack-c REQUIRED)
add_library(msgpackc UNKNOWN IMPORTED GLOBAL)
set_target_properties(msgpackc PROPERTIES IMPORTED_LOCATION ${TD_MSGPACK})
