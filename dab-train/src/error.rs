//! Why an experiment gave no model, by the part that failed. The message is that part's own.

/// What a part says, and what made it say so ([`source`](std::error::Error::source)).
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings contradict themselves or do not fit the data.
    #[error(transparent)]
    Experiment(Cause),
    /// Data are missing, malformed, or nothing can be learnt from them.
    #[error(transparent)]
    Data(Cause),
    /// Learning cannot begin or go on.
    #[error(transparent)]
    Learning(Cause),
    /// The trained model or a baseline cannot be measured.
    #[error(transparent)]
    Measuring(Cause),
    /// The trained model cannot be stored, or the stored one computes something else.
    #[error(transparent)]
    Export(Cause),
    /// A result cannot be written.
    #[error(transparent)]
    Output(Cause),
}

impl Error {
    /// Makes errors of one part: `map_err(Error::of(Error::Data))`.
    pub(crate) fn of<E: Into<Cause>>(part: fn(Cause) -> Self) -> impl FnOnce(E) -> Self {
        move |error| part(error.into())
    }
}
