//! Why an experiment gave no model, by the part that failed. The message is that part's own.

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings contradict themselves or do not fit the data.
    #[error(transparent)]
    Experiment(anyhow::Error),
    /// Data are missing, malformed, or nothing can be learnt from them.
    #[error(transparent)]
    Data(anyhow::Error),
    /// Learning cannot begin or go on.
    #[error(transparent)]
    Learning(anyhow::Error),
    /// The trained model or a baseline cannot be measured.
    #[error(transparent)]
    Measuring(anyhow::Error),
    /// The trained model cannot be stored, or the stored one computes something else.
    #[error(transparent)]
    Export(anyhow::Error),
    /// A result cannot be written.
    #[error(transparent)]
    Output(anyhow::Error),
}
