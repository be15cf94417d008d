# SPDX-License-Identifier: Apache-2.0

# Flags that every target of ours shares.
add_library(fedgen_flags INTERFACE)
target_include_directories(fedgen_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(fedgen_flags INTERFACE
  # Same seed, same bits: a * b + c is two roundings unless the code says Fma.
  -ffp-contract=off
  # Nobody reads errno after a square root, so roots in a loop are taken several at a time.
  -fno-math-errno
  # A prefetch of what will be written asks for it to be written; old processors skip it.
  $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-mprfchw>
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  # g++ 12 sees overlaps in "literal" + std::string that are not there.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${FEDGEN_WERROR}>:-Werror>)
# The kernels exist for AVX2 and for the baseline, which is the scalar twin (base/lanes-inl.h).
target_compile_definitions(fedgen_flags INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3|HWY_AVX3_DL)")
if(FEDGEN_SANITIZE)
  target_compile_options(fedgen_flags INTERFACE
    -fsanitize=${FEDGEN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g)
  target_link_options(fedgen_flags INTERFACE -fsanitize=${FEDGEN_SANITIZE})
endif()
if(FEDGEN_FUZZ)
  # The rooms report their coverage to libFuzzer too; only the targets of fuzz/ link its main.
  # Optimised for speed, but with every FEDGEN_DCHECK.
  target_compile_options(fedgen_flags INTERFACE -UNDEBUG
    -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(fedgen_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
endif()

# Headers that most files include are compiled once, with one owner for all targets of equal flags:
# fedgen_precompile(target owner header ...). A file still includes what it uses, which FEDGEN_PCH=OFF
# (preset lint) checks.
function(fedgen_precompile target owner)
  if(NOT FEDGEN_PCH)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
  # The C++ library mutes these false alarms about std::string by pragmas, which g++ 12 forgets when
  # it precompiles.
  target_compile_options(${target} PRIVATE
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
endfunction()
set(fedgen_common_headers
  <fmt/format.h> <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory>
  <numbers> <optional> <span> <string> <string_view> <utility> <vector>)

# fedgen_library(room SOURCES a.cc ... [TESTS a_test.cc ...] [DEPS room or library ...]
#                [PRIVATE library ...])
# makes the library fedgen::room and, if there are tests, the program room_test.
function(fedgen_library room)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPS;PRIVATE" ${ARGN})
  add_library(fedgen_${room} STATIC ${ARG_SOURCES})
  add_library(fedgen::${room} ALIAS fedgen_${room})
  target_link_libraries(fedgen_${room} PUBLIC fedgen_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE})
  fedgen_precompile(fedgen_${room} fedgen_base ${fedgen_common_headers})
  # Kernels are short loops that gain from being unrolled.
  set(kernels ${ARG_SOURCES})
  list(FILTER kernels INCLUDE REGEX "_kernel\\.cc$")
  set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS -funroll-loops)
  if(FEDGEN_TESTS AND ARG_TESTS)
    fedgen_test(${room}_test SOURCES ${ARG_TESTS} DEPS fedgen::${room} ${ARG_PRIVATE})
  endif()
endfunction()

# What all tests share. They compile at -O0, twice as fast; the libraries under test keep their
# optimisation.
if(FEDGEN_TESTS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/no_code.cc CONTENT "")
  add_library(fedgen_testing OBJECT ${PROJECT_BINARY_DIR}/generated/no_code.cc)
  target_link_libraries(fedgen_testing PUBLIC fedgen::base GTest::gmock GTest::gtest_main)
  target_compile_options(fedgen_testing PUBLIC -O0)
  target_compile_definitions(fedgen_testing PUBLIC FEDGEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  fedgen_precompile(fedgen_testing fedgen_testing
    ${fedgen_common_headers} <gmock/gmock.h> <gtest/gtest.h>)
endif()

# These sources of tests compute so much themselves that optimising them pays.
function(fedgen_optimize_tests)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# fedgen_test(name SOURCES a_test.cc ... [DEPS library ...] [LABELS slow])
function(fedgen_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE fedgen_testing ${ARG_DEPS})
  fedgen_precompile(${name} fedgen_testing)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS "${ARG_LABELS}")
endfunction()
