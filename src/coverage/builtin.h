// The criteria that come with us, one file each; builtin.cpp lists them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "galvani/coverage/criterion.h"
#include "galvani/coverage/profile.h"

namespace galvani {

using CriterionEntry = CriterionRegistry::Entry;

CriterionEntry nc_entry();
CriterionEntry nac_entry();
CriterionEntry kmnc_entry();
CriterionEntry nbc_entry();
CriterionEntry snac_entry();
CriterionEntry tknc_entry();
CriterionEntry tknp_entry();
CriterionEntry cc_entry();
CriterionEntry lsc_entry();
CriterionEntry dsc_entry();
CriterionEntry mdsc_entry();
CriterionEntry cac_entry();
CriterionEntry nlc_entry();
CriterionEntry npc_entry();

// Profile parts. A factory gives null for a name that is not its own.
constexpr const char* kRanges = "ranges";
std::unique_ptr<ProfilePart> make_ranges(const std::string& name, const TraceLayout& layout);
std::unique_ptr<ProfilePart> make_reference(const std::string& name, const TraceLayout& layout);
std::unique_ptr<ProfilePart> make_paths(const std::string& name, const TraceLayout& layout);
std::unique_ptr<ProfilePart> make_layer_moments(const std::string& name, const TraceLayout& layout);

// The parts that criteria with these options read.
std::vector<std::string> ranges_part(const Options& options, const TraceLayout& layout);
std::vector<std::string> reference_part(const Options& options, const TraceLayout& layout);
std::vector<std::string> paths_part(const Options& options, const TraceLayout& layout);
std::vector<std::string> cac_parts(const Options& options, const TraceLayout& layout);

// The profile, or a usage error that says how to make one.
const Profile& required_profile(const CriterionContext& context, const std::string& criterion);

}  // namespace galvani
