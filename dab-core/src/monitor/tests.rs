extern crate std;
use std::string::ToString;
use std::vec::Vec;

use super::*;
use proptest::prelude::*;

fn config() -> Config {
    Config {
        enter: 2.0,
        exit: 1.0,
        enter_votes: 3,
        exit_votes: 4,
        window: 5,
        reject_votes: 3,
        min_dwell: 10,
        timeout: 20,
        drift: Drift::OFF,
    }
}

/// A monitor that trusts, at time 100.
fn nominal() -> Monitor {
    let mut monitor = Monitor::new(config()).unwrap();
    for now in 0..=100 {
        let _ = monitor.observe(now, 0.5);
    }
    assert_eq!(monitor.state(), State::Nominal);
    monitor
}

#[test]
fn it_starts_distrusting_and_earns_trust() {
    let mut monitor = Monitor::new(config()).unwrap();
    assert_eq!(monitor.poll(7), State::Stale);
    assert_eq!(monitor.observe(8, 0.5), State::Fallback);
    // Ten ticks of dwell, then four calm inputs are enough.
    for now in 9..18 {
        assert_eq!(monitor.observe(now, 0.5), State::Fallback, "{now}");
    }
    assert_eq!(monitor.observe(18, 0.5), State::Nominal);
}

#[test]
fn votes_not_spikes_raise_the_alarm() {
    let mut monitor = nominal();
    for (i, u) in [9.0, 0.5, 9.0, 0.5, 0.5, 0.5, 9.0, 9.0].into_iter().enumerate() {
        assert_eq!(monitor.observe(101 + i as u32, u), State::Nominal, "{i}");
    }
    assert_eq!(monitor.observe(109, f32::NAN), State::Fallback, "a NaN votes for the alarm");
    assert_eq!(monitor.statistics().alarms, 1);
    assert_eq!(monitor.why(), Why::REJECTED, "two votes alone were no spike");
    // Between the thresholds nothing changes, for ever.
    for now in 110..300 {
        assert_eq!(monitor.observe(now, 1.5), State::Fallback);
    }
}

#[test]
fn one_rejected_input_adds_nothing_to_a_spike() {
    let mut monitor = nominal();
    for now in 101..104 {
        let _ = monitor.observe(now, 9.0);
    }
    assert_eq!((monitor.state(), monitor.why()), (State::Fallback, Why::SPIKE));
    let _ = monitor.reject(104);
    assert_eq!(monitor.why(), Why::SPIKE, "the votes alone were enough");
}

#[test]
fn silence_and_clocks_that_jump_back_fail_safe() {
    let mut monitor = nominal();
    assert_eq!(monitor.poll(120), State::Nominal);
    assert_eq!(monitor.poll(121), State::Stale);
    assert_eq!(monitor.observe(122, 0.5), State::Fallback, "one input is not enough");
    let mut monitor = nominal();
    assert_eq!(monitor.observe(130, 0.5), State::Fallback, "the first input after a silence");
    let mut monitor = nominal();
    assert_eq!(monitor.poll(99), State::Stale);
    assert_eq!(monitor.statistics().stales, 1);
}

#[test]
fn plain_is_an_if() {
    let mut monitor = Monitor::new(Config::plain(1.0)).unwrap();
    for (now, u) in [0.0, 2.0, 1.0, 1.1, f32::INFINITY, 0.9].into_iter().enumerate() {
        let expected = if u <= 1.0 { State::Nominal } else { State::Fallback };
        assert_eq!(monitor.observe(now as u32, u), expected, "{u}");
    }
}

#[test]
fn unsound_configurations_are_refused_in_words() {
    type Change = fn(&mut Config);
    let broken: [(Change, &str); 11] = [
        (|c| c.enter = f32::NAN, "enter is NaN and exit 1: both must be finite, and exit at most enter"),
        (
            |c| c.exit = f32::NEG_INFINITY,
            "enter is 2 and exit -inf: both must be finite, and exit at most enter",
        ),
        (|c| c.exit = 3.0, "enter is 2 and exit 3: both must be finite, and exit at most enter"),
        (|c| c.window = 0, "the window is 0, allowed are 1 to 2097120"),
        (|c| c.window = 2_097_121, "the window is 2097121, allowed are 1 to 2097120"),
        (|c| c.enter_votes = 0, "0 votes cannot decide among 5 inputs, allowed are 1 to 5"),
        (|c| c.enter_votes = 6, "6 votes cannot decide among 5 inputs, allowed are 1 to 5"),
        (|c| c.exit_votes = 6, "6 votes cannot decide among 5 inputs, allowed are 1 to 5"),
        (|c| c.reject_votes = 6, "6 votes cannot decide among 5 inputs, allowed are 1 to 5"),
        (
            |c| c.drift = Drift { block: 9, ..Drift::OFF },
            "the drift channel has blocks of 9 inputs and the alarm 0: allowed are blocks of at most 1073741824, an \
             alarm above 0 and at most 10000, levels that ascend, and p-values that descend, above 0 and at most 1",
        ),
        (|c| c.timeout = 1 << 31, "the timeout is 2147483648 ticks, allowed are at most 2147483647"),
    ];
    for (change, words) in broken {
        let mut config = config();
        change(&mut config);
        assert_eq!(Monitor::new(config).unwrap_err().to_string(), words);
    }
}

#[test]
fn a_tick_without_an_assessment_is_never_nominal_and_alone_no_alarm() {
    let mut monitor = nominal();
    assert_eq!(monitor.reject(101), State::Fallback);
    assert_eq!((monitor.state(), monitor.why()), (State::Fallback, Why::REJECTED));
    assert_eq!(monitor.poll(102), State::Fallback, "until there is an input");
    assert_eq!(monitor.observe(103, 0.5), State::Nominal);
    assert_eq!(
        (monitor.why(), monitor.statistics().alarms, monitor.statistics().rejected),
        (Why::NONE, 0, 1)
    );
    assert_eq!(monitor.statistics().fallback_ticks, 10 + 2, "ten of the start, two held");
}

#[test]
fn a_sensor_that_fails_every_second_tick_loses_trust_for_good() {
    // All 16 of 16 votes are needed for a spike: rejected inputs alarm by themselves.
    let config =
        Config { enter_votes: 16, exit_votes: 1, window: 16, reject_votes: 0, min_dwell: 0, ..config() };
    let mut monitor = Monitor::new(config).unwrap();
    let nominal = (0..1000).filter(|&now| {
        let score = if now % 2 == 1 { f32::NAN } else { 0.5 };
        monitor.observe(now, score) == State::Nominal
    });
    assert!(nominal.count() <= 4);
    assert!(monitor.why().contains(Why::REJECTED) && monitor.statistics().rejected == 500);
    assert_eq!((monitor.statistics().alarms, monitor.statistics().rejections), (1, 1));
}

#[test]
fn a_slow_drift_below_the_threshold_is_found_told_apart_and_over_when_it_ends() {
    let blocks: Vec<f32> = (0..50).map(|i| 0.4 + i as f32 / 250.0).collect();
    let drift = Drift::from_blocks(20, 4.0, &blocks).unwrap();
    let mut monitor = Monitor::new(Config { drift, ..config() }).unwrap();
    let mut now = 0;
    let mut feed = |monitor: &mut Monitor, ticks: u32, u: f32| {
        (0..ticks).for_each(|_| {
            let _ = monitor.observe(now, u);
            now += 1;
        });
    };
    feed(&mut monitor, 2000, 0.5);
    assert_eq!((monitor.state(), monitor.statistics().alarms), (State::Nominal, 0));
    // Ninety percent of the way from 0.5 to the threshold of 2.
    feed(&mut monitor, 200, 1.85);
    assert_eq!((monitor.state(), monitor.why()), (State::Fallback, Why::DRIFT));
    let (capital, p_value) = monitor.drift();
    assert!(capital >= 4.0 && 0.0 < p_value && p_value < 0.05, "{capital} {p_value}");
    feed(&mut monitor, 5000, 1.85);
    assert_eq!(
        (monitor.state(), monitor.statistics().alarms),
        (State::Fallback, 1),
        "one episode, one alarm"
    );
    feed(&mut monitor, 60, 0.5);
    assert_eq!((monitor.state(), monitor.statistics().drifts), (State::Nominal, 1));
    let events: Vec<Why> = monitor.events().map(|event| event.why).collect();
    assert_eq!(events, [Why::NONE, Why::DRIFT, Why::NONE], "trusted, drifted, trusted");
}

#[test]
fn the_ring_keeps_the_last_events() {
    let mut monitor = Monitor::new(Config::plain(1.0)).unwrap();
    for now in 0..100 {
        let _ = monitor.observe(now, if now % 2 == 0 { 0.0 } else { now as f32 });
    }
    let events: Vec<Event> = monitor.events().collect();
    assert_eq!((events.len(), monitor.event_count()), (EVENTS, 98));
    assert_eq!(
        events[0],
        Event { tick: 99, why: Why::SPIKE, score: 99.0, nearest: Event::NO_CODE },
        "the latest first"
    );
    assert_eq!((events[7].tick, events[7].why), (92, Why::NONE));
    let _ = monitor.poll(50);
    assert_eq!(monitor.events().next().map(|event| event.why), Some(Why::STALE));
    assert_eq!(Why::SPIKE.with(Why::REJECTED).to_string(), "spike, rejected");
    assert_eq!(Why::SPIKE.with(Why::SPIKE), Why::SPIKE);
}

#[test]
fn windows_of_minutes_vote_as_short_ones_do() {
    let window = 60_000;
    let config =
        Config { window, enter_votes: 30_000, exit_votes: 1, min_dwell: 0, reject_votes: 0, ..config() };
    let mut monitor = Monitor::new(config).unwrap();
    (0..window).for_each(|now| {
        let _ = monitor.observe(now, 0.5);
    });
    let found = (0..window).find(|after| monitor.observe(window + after, 3.0) == State::Fallback);
    assert_eq!(found, Some(29_999));
}

#[test]
fn bytes_that_are_no_monitor_are_refused_in_words() {
    let saved = nominal().save();
    let mut monitor = nominal();
    let mut refused = |change: fn(&mut [u8; SAVED_BYTES])| {
        let mut bytes = saved;
        change(&mut bytes);
        monitor.restore(&bytes).unwrap_err().to_string()
    };
    assert_eq!(refused(|b| b[0] = b'x'), "these bytes are not a saved monitor");
    assert!(refused(|b| b[20] ^= 1).starts_with("the saved monitor is damaged (checksum "));
    let sealed = |b: &mut [u8; SAVED_BYTES]| {
        let crc = crate::artifact::crc::crc32c(&b[8..]).to_le_bytes();
        b[4..8].copy_from_slice(&crc);
    };
    let mut bytes = saved;
    bytes[12] = 9;
    sealed(&mut bytes);
    let words = monitor.restore(&bytes).unwrap_err().to_string();
    assert_eq!(words, "no inputs lead to the state of this saved monitor");
    let mut other = Monitor::new(Config { timeout: 21, ..config() }).unwrap();
    let words = other.restore(&saved).unwrap_err().to_string();
    assert_eq!(words, "the monitor was saved with another configuration");
}

prop_compose! {
    fn any_config()(
        exit in 0f32..2.0, gap in 0f32..2.0, window in 1u32..=32, a in 0u32..32, b in 0u32..32,
        min_dwell in 0u32..40, timeout in 0u32..30,
    ) -> Config {
        let votes = |x: u32| 1 + x % window;
        Config {
            enter: exit + gap, exit, enter_votes: votes(a), exit_votes: votes(b), window, reject_votes: 0,
            min_dwell, timeout, drift: Drift::OFF,
        }
    }
}

proptest! {
    /// The same inputs at the same intervals give the same states, wherever the counter starts.
    #[test]
    fn wrap_around_changes_nothing(
        config in any_config(), start: u32, steps in prop::collection::vec((0u32..25, 0f32..4.0), 1..120),
    ) {
        let run = |start: u32| -> Vec<State> {
            let mut monitor = Monitor::new(config).unwrap();
            let mut now = start;
            steps.iter().map(|&(ticks, u)| {
                now = now.wrapping_add(ticks);
                if u > 3.5 { monitor.poll(now) } else { monitor.observe(now, u) }
            }).collect()
        };
        prop_assert_eq!(run(0), run(start));
    }

    /// Against a monitor that remembers everything.
    #[test]
    fn it_does_what_the_words_say(
        config in any_config(), steps in prop::collection::vec((0u32..25, 0f32..4.0), 1..120),
    ) {
        let mut monitor = Monitor::new(config).unwrap();
        let (mut history, mut now, mut last, mut since) = (Vec::new(), 0u32, 0, 0);
        let mut state = State::Stale;
        for (ticks, u) in steps {
            now += ticks;
            if config.timeout > 0 && now - last > config.timeout && state != State::Stale {
                (state, since) = (State::Stale, now);
                history.clear();
            }
            last = now;
            if state == State::Stale {
                (state, since) = (State::Fallback, now);
            }
            history.push(u);
            let count = |vote: &dyn Fn(f32) -> bool| {
                history.iter().rev().take(config.window as usize).filter(|&&u| vote(u)).count()
            };
            let alarm = count(&|u| u > config.enter) >= config.enter_votes as usize;
            let calm = count(&|u| u <= config.exit) >= config.exit_votes as usize;
            if state == State::Nominal && alarm {
                (state, since) = (State::Fallback, now);
            } else if state == State::Fallback && !alarm && calm && now - since >= config.min_dwell {
                (state, since) = (State::Nominal, now);
            }
            prop_assert_eq!(monitor.observe(now, u), state);
        }
        let s = monitor.statistics();
        prop_assert_eq!(s.inputs, s.uncertainty.count());
        prop_assert!(s.votes <= s.inputs);
    }

    /// A restored monitor continues bit for bit; a damaged one is refused and changes nothing; a reset one is new.
    #[test]
    fn a_saved_monitor_continues(
        config in any_config(), steps in prop::collection::vec((0u32..25, 0f32..5.0), 1..120), cut in 0usize..120,
        flip in 0usize..SAVED_BYTES * 8, block in 0u32..4,
    ) {
        let drift = Drift { block, ..Drift::from_blocks(1, 0.5, &[0.5, 1.0, 1.5, 2.0]).unwrap() };
        let config = Config { drift, ..config };
        let mut monitor = Monitor::new(config).unwrap();
        let mut other = monitor;
        let mut now = 0;
        for (i, (ticks, u)) in steps.into_iter().enumerate() {
            now += ticks;
            let u = if u > 4.5 { f32::NAN } else { u };
            let state = monitor.observe(now, u);
            if i > cut {
                prop_assert_eq!(other.observe(now, u), state);
            } else {
                prop_assert_eq!(other.restore(&monitor.save()), Ok(()));
            }
            prop_assert_eq!(other, monitor);
        }
        let mut saved = monitor.save();
        saved[flip / 8] ^= 1 << (flip % 8);
        prop_assert!(other.restore(&saved).is_err());
        prop_assert_eq!(other, monitor);
        other.reset();
        prop_assert_eq!(other, Monitor::new(config).unwrap());
    }
}
