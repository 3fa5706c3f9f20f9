// The tables of campaign.db, described in docs/campaigns.md.
#pragma once

#include <string>

#include "fuzz/sqlite.h"
#include "galvani/fuzz/settings.h"

namespace galvani {

constexpr int kSchemaVersion = 4;
constexpr int kOldestSchema = 2;

// `identity` is CampaignRecord::identity.
void create_schema(Database& database, const std::string& identity);
// Error(bad_input) unless the database has our tables in a version we know; `name` is the file. An older one is read as
// if it had the newest tables; nothing is written.
void check_schema(Database& database, const std::string& name);
// Brings an older one to the newest version, in one transaction.
void migrate_schema(Database& database, const std::string& name);
// Error(bad_input) unless the store was begun with this record; `name` is the record's file.
void check_identity(Database& database, const CampaignRecord& record, const std::string& name);

}  // namespace galvani
