// The tables of campaign.db, described in docs/campaigns.md.
#pragma once

#include <string>

#include "fuzz/sqlite.h"

namespace galvani {

constexpr int kSchemaVersion = 1;

void create_schema(Database& database);
// Error(bad_input) unless the database has our tables in the version we know; `name` is the file.
void check_schema(Database& database, const std::string& name);

}  // namespace galvani
