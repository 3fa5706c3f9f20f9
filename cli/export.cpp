#include "galvani/report/export.h"

#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct ExportFlags {
  std::string folder;
  std::string form = "folder";
  std::string output;
  std::string what = "faults";
  bool distinct = false;
  bool kept = false;
};

ExportOptions options_of(const ExportFlags& flags) {
  ExportForm form = flags.form == "npz" ? ExportForm::npz : flags.form == "csv" ? ExportForm::csv : ExportForm::folder;
  return {form, flags.what == "outputs", flags.distinct, flags.kept};
}

void run(const Common& common, const ExportFlags& flags) {
  if (flags.form != "folder") check_output(flags.output);
  CampaignReader reader(flags.folder);
  std::int64_t exported = export_campaign(reader, options_of(flags), flags.output);
  if (exported == 0) bad_usage("{}: has no {} to export", flags.folder, flags.what);
  if (common.json) {
    common.give({{"folder", flags.folder}, {"output", flags.output}, {"exported", exported}});
  } else {
    say("{} {} are now in {}\n", format_count(exported), flags.what, flags.output);
  }
}

}  // namespace

void add_export_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<ExportFlags>();
  Verb& verb = make_verb(app, common, "export", "write what a campaign found to files that other tools open",
                         "  galvani export run1 --to folder -o faults/      PNG files, labels.csv, mutants.csv\n"
                         "  galvani export run1 --to npz -o faults.npz      images, labels, predicted, ...\n"
                         "  galvani export run1 --to csv -o faults.csv      a table with lineages, no images\n"
                         "  galvani export run1 --what outputs --to npz -o outputs.npz\n"
                         "  galvani export run1 --kept --to npz -o kept.npz     faults that gained coverage\n"
                         "A folder or NPZ file can be given to --data of every verb.");
  verb.add_option("run", flags->folder, "the campaign's folder").required();
  verb.add_option("--to", flags->form, "folder, npz or csv").check(OneOf{{"folder", "npz", "csv"}}).show_default();
  verb.add_option("-o,--output", flags->output, "where to").required();
  verb.add_option("--what", flags->what, "faults, or outputs (every mutant that was kept)")
      .check(OneOf{{"faults", "outputs"}})
      .show_default();
  verb.add_flag("--distinct", flags->distinct, "identical images of one class only once");
  verb.add_flag("--kept", flags->kept, "only faults that the guide kept");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
