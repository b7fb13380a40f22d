# SPDX-License-Identifier: Apache-2.0
# The crates of rust/: always release builds, shared by every preset (sanitizers
# do not see into them anyway), and each built for those alone who need it.

set(TD_RUST_DIR ${PROJECT_SOURCE_DIR}/build/rust CACHE PATH "cargo's target folder")
set(TD_CARGO ${PROJECT_SOURCE_DIR}/tools/cargo)

set(TD_ZENOH_LIB ${TD_RUST_DIR}/release/libtendon_zenoh.a)
set(TD_FORMATS_LIB ${TD_RUST_DIR}/release/libtendon_formats.so)
file(GLOB_RECURSE TD_RUST_SOURCES CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/rust/*.rs ${PROJECT_SOURCE_DIR}/rust/*.toml)

# td_crate(PACKAGE OUTPUT WORDS): one at a time, see rust/Cargo.toml.
function(td_crate package output words)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${TD_RUST_DIR}
            ${TD_CARGO} build --release --locked -p ${package}
            --manifest-path ${PROJECT_SOURCE_DIR}/rust/Cargo.toml
    COMMAND ${CMAKE_COMMAND} -E touch_nocreate ${output}
    DEPENDS ${TD_RUST_SOURCES} ${PROJECT_SOURCE_DIR}/rust/Cargo.lock
    USES_TERMINAL VERBATIM COMMENT "cargo build: ${words}")
endfunction()
td_crate(tendon-zenoh ${TD_ZENOH_LIB} "Zenoh (minutes the first time)")
td_crate(tendon-formats ${TD_FORMATS_LIB} "Parquet and tokenizers")

# td_zenoh: a static library in everything that has a network.
add_custom_target(td_zenoh_build DEPENDS ${TD_ZENOH_LIB})
add_library(td_zenoh STATIC IMPORTED GLOBAL)
set_target_properties(td_zenoh PROPERTIES
  IMPORTED_LOCATION ${TD_ZENOH_LIB}
  INTERFACE_INCLUDE_DIRECTORIES
    "${PROJECT_SOURCE_DIR}/rust/zenoh/include;${PROJECT_SOURCE_DIR}/rust/border/include"
  INTERFACE_LINK_LIBRARIES "pthread;dl;m"
  # One of its objects is assembly that does not say so itself.
  INTERFACE_LINK_OPTIONS "-Wl,-z,noexecstack")
add_dependencies(td_zenoh td_zenoh_build)

# libtendon_formats.so: Parquet and tokenizers, loaded by the first table and the
# first tokenizer. td_formats is its header; who runs with it LOADS tendon_formats.
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/libtendon_formats.so
  COMMAND ${CMAKE_COMMAND} -E create_symlink ${TD_FORMATS_LIB}
          ${PROJECT_BINARY_DIR}/libtendon_formats.so
  DEPENDS ${TD_FORMATS_LIB}
  VERBATIM COMMENT "libtendon_formats.so beside the programs")
add_custom_target(tendon_formats ALL
  DEPENDS ${PROJECT_BINARY_DIR}/libtendon_formats.so)
add_library(td_formats INTERFACE)
target_include_directories(td_formats INTERFACE
  ${PROJECT_SOURCE_DIR}/rust/formats/include
  ${PROJECT_SOURCE_DIR}/rust/border/include)
