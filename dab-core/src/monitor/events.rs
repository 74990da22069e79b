//! Why the fallback drives, and what a logger can read of the past.

use core::fmt;

/// Events that are kept.
pub const EVENTS: usize = 8;

/// Reasons to distrust: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Why(u8);

impl Why {
    /// No reason: the state is nominal.
    pub const NONE: Self = Self(0);
    /// Enough of the last inputs were above the threshold.
    pub const SPIKE: Self = Self(1);
    /// Blocks of inputs were stranger than recorded ones for too long.
    pub const DRIFT: Self = Self(2);
    /// There was no input for too long, or the clock jumped back.
    pub const STALE: Self = Self(4);
    /// Inputs could not be assessed.
    pub const REJECTED: Self = Self(8);
    /// Nothing was seen yet.
    pub const STARTING: Self = Self(16);

    /// The set as a number: 1 spike, 2 drift, 4 stale, 8 rejected, 16 starting.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set of a number; `None` for bits that are no reason.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits < 32 { Some(Self(bits)) } else { None }
    }

    /// Whether there is no reason.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all reasons of `other` are among these.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn only_if(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Such as "spike, drift"; "none" for no reason.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::SPIKE, "spike"),
            (Self::DRIFT, "drift"),
            (Self::STALE, "stale"),
            (Self::REJECTED, "rejected"),
            (Self::STARTING, "starting"),
        ];
        let mut between = "";
        for (why, name) in names {
            if self.contains(why) {
                write!(f, "{between}{name}")?;
                between = ", ";
            }
        }
        if self.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

/// Trust was lost, lost for a further reason, or came back.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Event {
    /// When.
    pub tick: u32,
    /// The new reasons; none: trust came back.
    pub why: Why,
    /// The score of the input; the largest number without one.
    pub score: f32,
    /// The closest code; [`Event::NO_CODE`] where it is not known.
    pub nearest: u32,
}

impl Event {
    /// `nearest` of an event without an assessment.
    pub const NO_CODE: u32 = u32::MAX;
    const NONE: Self = Self { tick: 0, why: Why::NONE, score: 0.0, nearest: Self::NO_CODE };
}

/// The last events, in a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Events {
    pub(super) ring: [Event; EVENTS],
    pub(super) count: u64,
}

impl Events {
    pub(super) const NONE: Self = Self { ring: [Event::NONE; EVENTS], count: 0 };

    pub(super) fn push(&mut self, event: Event) {
        if let Some(place) = self.ring.get_mut(self.count as usize % EVENTS) {
            *place = event;
        }
        self.count = self.count.saturating_add(1);
    }

    pub(super) fn latest_first(&self) -> impl Iterator<Item = Event> + '_ {
        let kept = if self.count < EVENTS as u64 { self.count } else { EVENTS as u64 };
        (1..=kept).filter_map(|back| self.ring.get(self.count.wrapping_sub(back) as usize % EVENTS).copied())
    }
}
