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

/* Use the fallback: the inputs are unfamiliar, or not yet familiar for long enough. */
#define DAB_FALLBACK 0
#define DAB_NOMINAL 1               /* The inputs are familiar: the learned controller may drive. */
#define DAB_STALE 2                 /* Use the fallback: there is no recent input. */
#define DAB_WHY_SPIKE 1             /* why: enough of the last inputs were above `enter`. */
#define DAB_WHY_DRIFT 2             /* why: blocks of inputs were stranger than recorded ones for too long. */
#define DAB_WHY_STALE 4             /* why: there was no input for too long, or the clock jumped back. */
#define DAB_WHY_REJECTED 8          /* why: inputs could not be assessed. */
#define DAB_WHY_STARTING 16         /* why: trust was not earned yet since the start. */
#define DAB_MONITOR_SAVED_BYTES 496 /* Bytes of a saved monitor. */
#define DAB_MONITOR_EVENTS 8        /* Events that a monitor keeps. */
#define DAB_DRIFT_LEVELS 7          /* Levels of the table of the drift channel. */

/* A monitor, in memory of the caller. Its words are private; copying the struct copies the monitor. */
typedef struct dab_monitor {
    uint64_t words[88]; /* Private. */
} dab_monitor;
DAB_STATIC_ASSERT(monitor_size, sizeof(dab_monitor) == 704);
DAB_STATIC_ASSERT(monitor_words, offsetof(dab_monitor, words) == 0);

/* When to distrust a stream of inputs, and when to trust it again. Set `size`. `dab monitor tune` writes one for a
 * budget of false alarms an hour, from a recorded stream. */
typedef struct dab_monitor_config {
    uint32_t size;         /* sizeof(dab_monitor_config), set by the caller. */
    float enter;           /* A score above this votes for the alarm (see dab_threshold). */
    float exit;            /* A score at or below this votes for recovery; at most `enter`. */
    /* How many of the last inputs vote, 1 to 2097120. Above 32, votes are counted to within 1/32 of the window. */
    uint32_t window;
    uint32_t enter_votes;  /* Votes that raise the alarm, 1 to window. */
    uint32_t exit_votes;   /* Votes that end it, 1 to window. */
    /* Ticks before trust, at least: from the first input, after an alarm, after DAB_STALE. It delays no alarm. */
    uint32_t min_dwell;
    uint32_t timeout;      /* More ticks than this without an input are DAB_STALE; below 2^31; 0: never. */
    uint32_t reject_votes; /* Rejected inputs that raise the alarm, up to window; 0: a quarter of it. */
    uint32_t drift_block;  /* Inputs in a block of the drift channel; 0: there is none. */
    float drift_alarm;     /* ln of the evidence (a bettor's capital) that raises the drift alarm, above 0. */
    uint32_t drift_keeps;  /* 0: bets start anew when the capital has fallen below its start; 1: never. */
    float drift_levels[7]; /* Means of recorded blocks, ascending. */
    float drift_p[7];      /* At most this share of familiar blocks lies above each level; descending. */
} dab_monitor_config;
DAB_STATIC_ASSERT(monitor_config_size, sizeof(dab_monitor_config) == 104);
DAB_STATIC_ASSERT(monitor_config_drift_p, offsetof(dab_monitor_config, drift_p) == 76);

/* Trust was lost, lost for a further reason, or came back. Set `size` before the call. */
typedef struct dab_event {
    uint32_t size;    /* sizeof(dab_event), set by the caller. */
    uint32_t number;  /* Which event, counting from 1; 0: there is none. */
    uint32_t tick;    /* When. */
    uint32_t why;     /* New reasons, bits of DAB_WHY_; 0: trust came back. */
    float score;      /* The score of the input; FLT_MAX without one. */
    uint32_t nearest; /* The closest code, or DAB_NONE. */
} dab_event;
DAB_STATIC_ASSERT(event_size, sizeof(dab_event) == 24);
DAB_STATIC_ASSERT(event_nearest, offsetof(dab_event, nearest) == 20);

/* What a monitor saw so far. Set `size` before the call. */
typedef struct dab_monitor_statistics {
    uint32_t size;           /* sizeof(dab_monitor_statistics), set by the caller. */
    int32_t state;           /* DAB_NOMINAL, DAB_FALLBACK or DAB_STALE. */
    uint64_t inputs;         /* Inputs, including those that were rejected. */
    uint64_t votes;          /* Inputs that voted for the alarm. */
    uint64_t alarms;         /* How often trust was lost to unfamiliar, drifting or rejected inputs. */
    uint64_t stales;         /* How often the input went silent, or the clock jumped back. */
    uint64_t nominal_ticks;  /* Ticks in DAB_NOMINAL. */
    uint64_t fallback_ticks; /* Ticks in the other states. */
    uint64_t rejected;       /* Inputs that could not be assessed: a NaN, a wrong length. */
    uint64_t spikes;         /* Alarms that the votes raised. */
    uint64_t drifts;         /* Alarms that the drift channel raised. */
    uint64_t rejections;     /* Alarms that rejected inputs raised. */
    uint64_t events;         /* Events so far; the last DAB_MONITOR_EVENTS can be read. */
    float mean;              /* Mean of the finite scores. */
    float std;               /* Standard deviation of the finite scores. */
    float min;               /* Smallest finite score. */
    float max;               /* Largest finite score. */
    uint32_t why;            /* Bits of DAB_WHY_; 0 in DAB_NOMINAL. */
    int32_t last_rejection;  /* Why dab_guard rejected an input last; DAB_OK: never. */
    float drift_capital;     /* ln of the capital of the drift channel. */
    float drift_p;           /* p-value of its last complete block; 1 before the first. */
} dab_monitor_statistics;
DAB_STATIC_ASSERT(monitor_statistics_size, sizeof(dab_monitor_statistics) == 128);
DAB_STATIC_ASSERT(monitor_statistics_drift_p, offsetof(dab_monitor_statistics, drift_p) == 124);

/* Who may drive? The whole of a control loop: assesses the input of tick `now`, gives its verdict, predicts, and tells
 * the monitor. Whatever is refused (a NaN, a wrong length, a bad pointer) is counted, votes for the fallback, and is
 * never driven on; dab_monitor_statistics.last_rejection says why. A refused input is DAB_FALLBACK for its own tick only,
 * until `reject_votes` of them are in the window.
 * The answer is about the stream, by the thresholds of the monitor: one unfamiliar input among familiar ones is still
 * DAB_NOMINAL, until `enter_votes` of them are in the window. If not even one may be driven on, set `enter_votes` to 1,
 * or ask for the verdict too: who == DAB_NOMINAL && a.verdict == DAB_FAMILIAR.
 * outputs: as dab_predict; NULL and 0 if no prediction is wanted. They are written whenever the input was assessed, also in
 * DAB_FALLBACK; a refused input leaves them as they were. Use them in DAB_NOMINAL only. The rest as dab_assess and
 * dab_monitor_observe. On a tick without a new input, call dab_monitor_poll.
 * Returns DAB_NOMINAL (the outputs may be used), DAB_FALLBACK or DAB_STALE, or a negative number if `monitor` is not a
 * monitor. Use the fallback unless it is DAB_NOMINAL. */
DAB_API DAB_WARN_UNUSED int32_t dab_guard(const dab_model *model, dab_monitor *monitor, uint32_t now,
    const float *input, size_t inputs, float *outputs, size_t output_count, void *scratch, size_t scratch_bytes,
    dab_assessment *out);

/* Starts a monitor. It has seen nothing and trusts nothing: it is DAB_STALE, then DAB_FALLBACK from the first input
 * until enough inputs were familiar.
 * Returns DAB_OK, DAB_ERR_CONFIG if a value is out of its range, or -1 to -7 for bad pointers and sizes. After an error the
 * monitor is not started, even if it was before: it trusts nothing until a later call succeeds. */
DAB_API DAB_WARN_UNUSED dab_status dab_monitor_init(dab_monitor *monitor, const dab_monitor_config *config);

/* Takes in a score (dab_assessment.score) that was measured at tick `now`, and says who may drive.
 * now: any counter that goes up and wraps around at 2^32; `min_dwell` and `timeout` have its unit. After a step back, or
 * more than `timeout` ticks of silence, trust is earned anew (DAB_WHY_STALE).
 * score: NAN if the call that should have given it failed, s == DAB_OK ? a.score : NAN. A score that is not finite is a
 * rejected input: it votes for the alarm, and is DAB_FALLBACK for its own tick only, until `reject_votes` of them are in
 * the window. The FLT_MAX in a dab_assessment after an error is finite: it votes for the alarm, but one vote may leave the
 * state DAB_NOMINAL.
 * Threads: one at a time for each monitor.
 * Returns DAB_NOMINAL, DAB_FALLBACK, DAB_STALE, or -1, -2 or -6 for a bad pointer. Use the fallback unless it is
 * DAB_NOMINAL. */
DAB_API DAB_WARN_UNUSED int32_t dab_monitor_observe(dab_monitor *monitor, uint32_t now, float score);

/* Says who may drive at tick `now` when there is no new input, so that silence is noticed.
 * Returns as dab_monitor_observe. */
DAB_API DAB_WARN_UNUSED int32_t dab_monitor_poll(dab_monitor *monitor, uint32_t now);

/* Forgets everything but the configuration: the monitor is as new, and trusts nothing.
 * Returns DAB_OK, or -1, -2 or -6 for a bad pointer. */
DAB_API DAB_WARN_UNUSED dab_status dab_monitor_reset(dab_monitor *monitor);

/* Why the fallback drives: bits of DAB_WHY_, 0 in DAB_NOMINAL. DAB_WHY_STARTING if `monitor` is not a monitor. */
DAB_API uint32_t dab_monitor_why(const dab_monitor *monitor);

/* The event before the last `back` ones: 0 is the latest. Where there is none, or it was overwritten, `number` is 0.
 * Returns DAB_OK, or -1 to -7 for bad pointers and sizes. */
DAB_API DAB_WARN_UNUSED dab_status dab_monitor_event(const dab_monitor *monitor, uint32_t back, dab_event *out);

/* Saves everything but the configuration into DAB_MONITOR_SAVED_BYTES bytes, the same on every machine.
 * Returns DAB_OK, DAB_ERR_TOO_SMALL, or -1 to -6 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_monitor_save(const dab_monitor *monitor, void *bytes, size_t byte_count);

/* Continues with a saved monitor of the same configuration. After a restart the clock usually jumps back, which is
 * DAB_STALE: trust is then earned anew. If yours does not, call dab_monitor_reset instead, or set `timeout`.
 * Returns DAB_OK, DAB_ERR_SAVED_STATE, or -1 to -6 for bad pointers and sizes; on an error, the monitor stays as it was. */
DAB_API DAB_WARN_UNUSED dab_status dab_monitor_restore(dab_monitor *monitor, const void *bytes, size_t byte_count);

/* What the monitor saw so far.
 * Returns DAB_OK, or -1 to -7 for bad pointers and sizes. */
DAB_API DAB_WARN_UNUSED dab_status dab_monitor_stats(const dab_monitor *monitor, dab_monitor_statistics *out);

/* The monitor that was tuned for the model and lies in its artifact (`dab monitor tune --into`): start it with
 * dab_monitor_init.
 * out: set `size`. tick_seconds: the length of a tick for which it was tuned, or NULL; a loop with other ticks has other
 * false alarms an hour.
 * Returns DAB_OK, DAB_ERR_NO_MONITOR if the artifact has none, or -1 to -7 for bad pointers and sizes. After an error the
 * configuration, if it can be written, is one that dab_monitor_init refuses, and the tick is 0. */
DAB_API DAB_WARN_UNUSED dab_status dab_model_monitor(const dab_model *model, dab_monitor_config *out,
    float *tick_seconds);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DAB_MONITOR_H */
