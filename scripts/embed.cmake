# Writes text files into a C++ function that gives them by name:
# cmake -DOUT=x.cpp -DFUNCTION=galvani::page_part -DFILES="a.html;b.css" -P embed.cmake
string(REGEX MATCH "^(.*)::([^:]+)$" found ${FUNCTION})
set(space ${CMAKE_MATCH_1})
string(CONCAT text "// Written by scripts/embed.cmake.\n#include <string_view>\n\nnamespace ${space} {\n\n"
  "std::string_view ${CMAKE_MATCH_2}(std::string_view name);\n"
  "std::string_view ${CMAKE_MATCH_2}(std::string_view name) {\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} content)
  # Compilers need only take literals of 64 KiB, and adjacent ones are joined.
  string(LENGTH "${content}" length)
  set(from 0)
  string(APPEND text "if (name == \"${name}\")\nreturn \"\"\n")
  while(from LESS length)
    string(SUBSTRING "${content}" ${from} 8000 piece)
    string(APPEND text "R\"embedded(${piece})embedded\"\n")
    math(EXPR from "${from} + 8000")
  endwhile()
  string(APPEND text ";\n")
endforeach()
string(APPEND text "return {};\n}\n\n}  // namespace ${space}\n")
file(WRITE ${OUT} "${text}")
