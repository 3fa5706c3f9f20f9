// The page's template, embedded by CMake from src/report/page/.
#pragma once

namespace galvani::page_parts {

extern const char* const page_html;
extern const char* const page_css;
extern const char* const page_js;

}  // namespace galvani::page_parts
