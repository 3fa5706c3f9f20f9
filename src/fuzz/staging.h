// state/new/ of a campaign's folder: files are made there, and moved to their places once they are complete. Nothing of
// a campaign is half written anywhere else, and nothing else is ever cleared away.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace galvani {

class Staging {
 public:
  explicit Staging(const std::filesystem::path& campaign);

  const std::filesystem::path& folder() const { return folder_; }
  // Where a file of this name is made.
  std::filesystem::path path(std::string_view name) const { return folder_ / name; }

  // Moves a finished file to `target`, which keeps its name. If there is a file already, it is left alone: one that
  // holds the same is what was wanted, another one is Error(environment) naming it.
  void place(const std::filesystem::path& target) const;
  // The same over whatever is there.
  void replace(const std::filesystem::path& target) const;

  // What a process that was killed has left: names of a campaign's own files. Others are not ours and not listed.
  std::vector<std::string> left() const;
  void discard(const std::string& name) const;

  // Whether a campaign makes files of this name, or write_file on the way to one.
  static bool is_ours(std::string_view name);

 private:
  std::filesystem::path campaign_;
  std::filesystem::path folder_;
};

}  // namespace galvani
