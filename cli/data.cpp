#include "verb.h"

namespace galvani::cli {

void add_data_verb(CLI::App& app, Common& common) {
  make_verb(app, common, "data", "list, fetch, look at and export data sets", "");
}

}  // namespace galvani::cli
