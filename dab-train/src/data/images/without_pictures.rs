//! What a build without the feature `pictures` says to a picture file.

use std::path::Path;

use anyhow::{Result, bail};

use super::resize::Picture;

pub(super) fn decode(path: &Path) -> Result<Picture> {
    bail!("{}: this build lacks the cargo feature `pictures`, which reads JPEG and PNG", path.display())
}
