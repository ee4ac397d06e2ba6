# What libraries export: lists of names become version scripts, and functions that say that they are not supported.
# Each function here sets HEDDLE_EXPORTS_MAP and HEDDLE_EXPORTS_SOURCE in its caller.

# heddle_write_exports(SPEC SONAME SUFFIX MAJOR HEADER FUNCTION): out of the list SPEC, without the lines for another
# major version than MAJOR. HEADER declares what FUNCTION, the text of an unsupported function NAME, calls.
function(heddle_write_exports spec soname suffix major header function)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${spec})
  get_filename_component(file ${spec} NAME)
  file(STRINGS ${spec} lines REGEX "^[^#]")
  set(names "")
  set(source "// Made from ${file}.\n#include \"${header}\"\n\nnamespace heddle::client {\n\n")
  foreach(line IN LISTS lines)
    string(REPLACE " " ";" words "${line}")
    list(GET words 0 name)
    list(GET words 1 kind)
    list(LENGTH words count)
    if(count GREATER 2)
      list(GET words 2 only)
      if(NOT only STREQUAL major)
        continue()
      endif()
    endif()
    string(APPEND names "    ${name};\n")
    if(kind STREQUAL "unsupported")
      string(REPLACE "NAME" "${name}" text "${function}")
      string(APPEND source "${text}")
    endif()
  endforeach()
  string(APPEND source "\n}  // namespace heddle::client\n")
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${soname}.map)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/unsupported_${suffix}.cc)
  file(CONFIGURE OUTPUT ${map} CONTENT "${soname} {\n  global:\n${names}  local: *;\n};\n" @ONLY)
  file(CONFIGURE OUTPUT ${generated} CONTENT "${source}" @ONLY)
  set(HEDDLE_EXPORTS_MAP ${map} PARENT_SCOPE)
  set(HEDDLE_EXPORTS_SOURCE ${generated} PARENT_SCOPE)
endfunction()

# heddle_exports(MAJOR): of libcudart.so.MAJOR, out of exports.txt.
macro(heddle_exports major)
  heddle_write_exports(${CMAKE_CURRENT_SOURCE_DIR}/exports.txt libcudart.so.${major} ${major} ${major} "client/answer.h"
    "HEDDLE_EXPORT cudaError_t NAME() {\n  return unsupported(\"NAME\");\n}\n")
endmacro()

# heddle_driver_exports(): of libcuda.so.1, out of libraries/cuda_exports.txt. The functions themselves are in libcudart:
# HEDDLE_DRIVER_ENTRIES is the folder of a header with all names, client/libraries/cuda_entries.h, and
# HEDDLE_DRIVER_UNSUPPORTED a source with the table of those that say that they are not supported.
function(heddle_driver_exports)
  set(spec ${CMAKE_CURRENT_SOURCE_DIR}/libraries/cuda_exports.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${spec})
  file(STRINGS ${spec} lines REGEX "^[^#]")
  set(names "")
  set(entries "// Made from cuda_exports.txt.\n#define HEDDLE_DRIVER_ENTRIES")
  set(rows "")
  set(number 0)
  foreach(line IN LISTS lines)
    string(REPLACE " " ";" words "${line}")
    list(GET words 0 name)
    list(GET words 1 kind)
    string(APPEND names "    ${name};\n")
    if(kind STREQUAL "own")
      continue()
    endif()
    string(APPEND entries " \\\n  HEDDLE_DRIVER_ENTRY(${number}, ${name})")
    math(EXPR number "${number} + 1")
    if(kind STREQUAL "unsupported")
      string(APPEND rows "      HEDDLE_UNSUPPORTED(${name}),\n")
    endif()
  endforeach()
  set(map ${CMAKE_CURRENT_BINARY_DIR}/libcuda.so.1.map)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/driver_entries)
  set(unsupported ${CMAKE_CURRENT_BINARY_DIR}/unsupported_cuda.cc)
  file(CONFIGURE OUTPUT ${map} CONTENT "libcuda.so.1 {\n  global:\n${names}  local: *;\n};\n" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/client/libraries/cuda_entries.h CONTENT "#pragma once\n${entries}\n" @ONLY)
  file(CONFIGURE OUTPUT ${unsupported} CONTENT
"// Made from cuda_exports.txt.
#include \"client/driver/unsupported.h\"

namespace heddle::client {

std::span<const DriverFunction> unsupported_driver_functions() {
  static const DriverFunction rows[] = {
${rows}  };
  return rows;
}

}  // namespace heddle::client
" @ONLY)
  set(HEDDLE_EXPORTS_MAP ${map} PARENT_SCOPE)
  set(HEDDLE_DRIVER_ENTRIES ${folder} PARENT_SCOPE)
  set(HEDDLE_DRIVER_UNSUPPORTED ${unsupported} PARENT_SCOPE)
endfunction()

# heddle_library_exports(NAME SONAME STATUS): of SONAME, out of libraries/NAME_exports.txt; unsupported functions answer
# STATUS.
macro(heddle_library_exports name soname status)
  heddle_write_exports(${CMAKE_CURRENT_SOURCE_DIR}/libraries/${name}_exports.txt ${soname} ${name} ""
    "client/libraries/runtime_link.h"
    "HEDDLE_LIBRARY_EXPORT int NAME() {\n  say_unsupported(\"NAME\");\n  return ${status};\n}\n")
endmacro()
