// The table of metrics.
#include "quality/builtin.h"

namespace galvani {

const MetricRegistry& quality_metrics() {
  static const MetricRegistry registry(
      "metric", {mr_entry(), asr_entry(), acac_entry(), actc_entry(), ald0_entry(), ald2_entry(), aldinf_entry(),
                 ass_entry(), afs_entry(), psd_entry(), nte_entry(), rgb_entry(), ric_entry()});
  return registry;
}

}  // namespace galvani
