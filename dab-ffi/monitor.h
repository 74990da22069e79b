/* dab_monitor.h: may the learned controller drive? From a stream of inputs to one answer. dab.h includes this header.
 *
 *     static dab_monitor monitor;
 *     dab_monitor_config config = {.size = sizeof config};           // or DAB_MONITOR_CONFIG, of a header of `dab monitor tune`
 *     if (dab_model_monitor(model, &config, NULL) != DAB_OK) stop(); // the one that was tuned for the model, in its artifact
 *     if (dab_monitor_init(&monitor, &config) != DAB_OK) stop();
 *
 *     int32_t who = dab_guard(model, &monitor, now, input, inputs, outputs, n, scratch, sizeof scratch, &a);
 *     if (who == DAB_NOMINAL) act(outputs);                          // every other number: the fallback
 *     else fall_back();                                              // dab_monitor_why says why
 *
 * A monitor has three channels and a clock. SPIKE: `enter_votes` of the last `window` inputs are above `enter`. DRIFT: the
 * mean of each block of `drift_block` inputs is compared with recorded blocks; evidence (the capital of a bettor)
 * accumulates while blocks are stranger than recorded ones; the alarm comes when it reaches exp(drift_alarm). REJECTED:
 * `reject_votes` inputs of the window could not be assessed. STALE: no input for `timeout` ticks. Trust comes, the first
 * time too, when no channel alarms, `exit_votes` of the window are at or below `exit`, and `min_dwell` ticks are over: one
 * episode is one alarm.
 *
 * WHAT IS GUARANTEED. If blocks are exchangeable with the recorded ones, a false drift alarm comes at most once in
 * exp(drift_alarm) blocks on average, and with drift_keeps = 1 the chance that one ever comes is at most
 * exp(-drift_alarm) (Ville's inequality). The p-values of the table are rounded up for its finite size. Correlation
 * between blocks voids this, so blocks must be much longer than the correlation of the stream. The votes have no such
 * bound: a rate of false alarms for single inputs says nothing of an hour of correlated ones. `dab monitor tune` therefore
 * chooses both on a recorded stream, for a budget of false alarms an hour.
 *
 * Everything that dab.h says about memory, threads, errors and structs holds here. The work of a call is bounded by a
 * constant, whatever the window. */

/* This file is generated: edit monitor.h and the sources of dab-ffi. */

#ifndef DAB_MONITOR_H
#define DAB_MONITOR_H

#include "dab.h"

#ifdef __cplusplus
extern "C" {
#endif

@guard monitor tuned@

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DAB_MONITOR_H */
