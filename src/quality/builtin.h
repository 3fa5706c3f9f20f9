// The metrics that come with us, related ones in a file; builtin.cpp lists them.
#pragma once

#include "galvani/quality/metric.h"

namespace galvani {

using MetricEntry = MetricRegistry::Entry;

MetricEntry mr_entry();
MetricEntry asr_entry();
MetricEntry acac_entry();
MetricEntry actc_entry();
MetricEntry nte_entry();
MetricEntry ald0_entry();
MetricEntry ald2_entry();
MetricEntry aldinf_entry();
MetricEntry ass_entry();
MetricEntry afs_entry();
MetricEntry psd_entry();
MetricEntry rgb_entry();
MetricEntry ric_entry();

}  // namespace galvani
