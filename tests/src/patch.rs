//! Artifacts taken apart, changed, and put together again with valid checksums: what an attacker or a
//! faulty writer could hand to the reader.
//!
//! The layout and the CRC are written down here a second time, on purpose: they check the core's.

use core::ops::Range;

use dab_core::artifact::schema::{
    CHANNELS, ChannelsMeta, INT8, LOCAL, LOCAL_SCHEMA, MONITOR, MONITOR_SCHEMA, MONITOR_WORDS, Meta, NORMS,
    ParamCounts, REST, REST_SCHEMA, SCHEMA_KEYS, TAIL_VALUES, TAUGHT, TAUGHT_SCHEMA,
};
use dab_core::artifact::{AlignedBytes, Part};

/// Bytes of the header.
pub const HEADER: usize = 64;

/// What each byte does to a CRC-32C, bit by bit, straight from its definition.
const CRC: [u32; 256] = {
    let (mut table, mut byte) = ([0u32; 256], 0);
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// CRC-32C.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| crc >> 8 ^ CRC[usize::from(crc as u8 ^ byte)])
}

/// Makes both checksums fit the bytes again.
pub fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let body = crc32c(&bytes[HEADER..]);
    bytes[56..60].copy_from_slice(&body.to_le_bytes());
    let header = crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&header.to_le_bytes());
}

/// The u32 at `at`.
#[must_use]
pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// An artifact in pieces.
#[derive(Clone)]
pub struct Parts {
    /// The decoded meta section.
    pub meta: Meta,
    /// What format 1.1 has behind it.
    pub channels: Option<ChannelsMeta>,
    /// The parameters, with what was taught and the words of a monitor.
    pub params: Vec<f32>,
    /// Whether they have rests.
    pub rest: bool,
    /// Whether they have local precisions.
    pub local: bool,
    /// Whether they have taught codes.
    pub taught: bool,
    /// Whether they have a monitor.
    pub monitor: bool,
    /// The info section as it is.
    pub info: Vec<u8>,
}

/// FNV-1a of a text that follows one of this hash.
fn fnv_1a(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl Parts {
    /// Takes a sound artifact apart.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let section = |at: usize| {
            let (start, len) = (word(bytes, at) as usize, word(bytes, at + 4) as usize);
            &bytes[start..start + len]
        };
        let params = section(32).as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
        let (mut meta, mut rest): (Meta, _) =
            postcard::take_from_bytes(section(24)).expect("a sound artifact");
        let features = word(bytes, 16);
        let mut channels = None;
        if features & CHANNELS != 0 {
            let found = postcard::take_from_bytes(rest).expect("a sound artifact with channels");
            (channels, rest) = (Some(found.0), found.1);
        }
        if features & NORMS != 0 {
            meta.norms = postcard::from_bytes(rest).expect("a sound artifact with norms");
        }
        meta.int8 = features & INT8 != 0;
        let [rest, local, taught, monitor] = [REST, LOCAL, TAUGHT, MONITOR].map(|bit| features & bit != 0);
        Self { meta, channels, params, rest, local, taught, monitor, info: section(40).to_vec() }
    }

    /// The bytes of the meta section.
    ///
    /// # Panics
    /// Without memory.
    #[must_use]
    pub fn meta_bytes(&self) -> Vec<u8> {
        let mut bytes = postcard::to_allocvec(&self.meta).expect("memory");
        if let Some(channels) = &self.channels {
            bytes.extend(postcard::to_allocvec(channels).expect("memory"));
        }
        if self.meta.norms != 0 {
            bytes.extend(postcard::to_allocvec(&self.meta.norms).expect("memory"));
        }
        bytes
    }

    /// The incompatible-feature bits.
    fn features(&self) -> usize {
        usize::from(self.channels.is_some())
            | usize::from(self.meta.norms != 0) << 1
            | usize::from(self.meta.int8) << 2
            | usize::from(self.monitor) << 3
            | usize::from(self.taught) << 4
            | usize::from(self.rest) << 5
            | usize::from(self.local) << 6
    }

    /// The schema key of these pieces.
    fn key(&self) -> u64 {
        let key = SCHEMA_KEYS[self.features() % SCHEMA_KEYS.len()];
        let key = if self.rest { fnv_1a(key, REST_SCHEMA) } else { key };
        let key = if self.local { fnv_1a(key, LOCAL_SCHEMA) } else { key };
        let key = if self.taught { fnv_1a(key, TAUGHT_SCHEMA) } else { key };
        if self.monitor { fnv_1a(key, MONITOR_SCHEMA) } else { key }
    }

    /// The artifact that these pieces make.
    #[must_use]
    pub fn join(&self) -> AlignedBytes {
        self.join_with(&self.meta_bytes())
    }

    /// The artifact that these pieces make with other bytes for the meta section.
    #[must_use]
    pub fn join_with(&self, meta: &[u8]) -> AlignedBytes {
        let mut bytes = self.unsealed(meta);
        seal(&mut bytes);
        AlignedBytes::from(&*bytes)
    }

    /// The same without checksums.
    #[must_use]
    pub fn unsealed(&self, meta: &[u8]) -> Vec<u8> {
        let params_at = (HEADER + meta.len()).next_multiple_of(16);
        let params_len = 4 * self.params.len();
        let info_at = params_at + params_len;
        let total = info_at + self.info.len();
        let mut bytes = Vec::with_capacity(total);
        let features = self.features();
        // Channels alone are format 1.1.
        let minor = match (self.local, self.rest) {
            (true, _) => 4,
            (false, true) => 3,
            _ => features.min(2) as u8,
        };
        bytes.extend_from_slice(&[0x89, b'D', b'A', b'B', 0x0d, 0x0a, 0x1a, 0x0a, 1, 0, minor, 0]);
        let places = [HEADER, meta.len(), params_at, params_len, info_at, self.info.len()];
        for word in [total, features, 0].into_iter().chain(places) {
            bytes.extend_from_slice(&(word as u32).to_le_bytes());
        }
        bytes.extend_from_slice(&self.key().to_le_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend_from_slice(meta);
        bytes.resize(params_at, 0);
        for x in &self.params {
            bytes.extend_from_slice(&x.to_le_bytes());
        }
        bytes.extend_from_slice(&self.info);
        bytes
    }

    /// Where each part of the parameters lies, in the order of the format.
    #[must_use]
    pub fn places(&self) -> Vec<(Part, Range<usize>)> {
        let counts = self.meta.param_counts(self.channels.as_ref()).expect("a sound artifact");
        let ParamCounts { normalize, layers, head_weight, head_bias, code_means, .. } = counts;
        let ParamCounts { code_precisions, code_log_dets, codes, decoder_weight, decoder_bias, .. } = counts;
        let vectors = usize::from(self.meta.self_test.vectors);
        let mut sizes = vec![
            (Part::NormalizeMean, normalize),
            (Part::NormalizeInverseStd, normalize),
            (Part::Layers, layers),
            (Part::HeadWeight, head_weight),
            (Part::HeadBias, head_bias),
            (Part::CodeMeans, code_means),
            (Part::CodePrecisions, code_precisions),
            (Part::CodeLogDets, code_log_dets),
            (Part::CodePriors, codes),
            (Part::DecoderWeight, decoder_weight),
            (Part::DecoderBias, decoder_bias),
            (Part::CalibrationScores, counts.calibration),
            (Part::CalibrationPValues, counts.calibration),
            (Part::SelfTestInputs, vectors * self.meta.inputs as usize),
            (Part::SelfTestAnswers, vectors),
        ];
        if let Some(channels) = &self.channels {
            sizes.push((Part::Tails, TAIL_VALUES * channels.view_count()));
            for view in &channels.views {
                let view =
                    view.param_counts(self.meta.inputs, self.meta.has_bytes()).expect("a sound artifact");
                sizes.extend([
                    (Part::ViewNormalizeMean, view.normalize),
                    (Part::ViewNormalizeInverseStd, view.normalize),
                    (Part::ViewHeadWeight, view.head_weight),
                    (Part::ViewHeadBias, view.head_bias),
                    (Part::ViewCodeMeans, view.code_means),
                    (Part::ViewCodePriors, view.codes),
                    (Part::ViewDecoderWeight, view.decoder_weight),
                    (Part::ViewDecoderBias, view.decoder_bias),
                ]);
            }
            let points = channels.ambiguity.map_or(0, |a| usize::from(a.points));
            sizes.extend([(Part::AmbiguityScores, points), (Part::AmbiguityPValues, points)]);
        }
        let mut end = 0;
        let place = |(part, size)| {
            end += size;
            (part, end - size..end)
        };
        let mut places: Vec<_> =
            sizes.into_iter().map(place).filter(|(_, range)| !range.is_empty()).collect();
        if !self.taught && !self.monitor {
            places.extend(self.blocks_of_views());
        }
        if self.monitor {
            let end = self.params.len();
            places.push((Part::Monitor, end.saturating_sub(MONITOR_WORDS)..end));
        }
        places
    }

    /// Where the values of rests and of local precisions lie, with which the parameters end: behind the bytes, each before the word
    /// that says which views they are about.
    fn blocks_of_views(&self) -> Vec<(Part, Range<usize>)> {
        let others = self.channels.iter().flat_map(|c| &c.views).map(|view| [view.dim, view.codes]);
        let sizes: Vec<[u32; 2]> = [[self.meta.dim, self.meta.codes]].into_iter().chain(others).collect();
        let (mut end, mut blocks) = (self.params.len(), Vec::new());
        // From the end on: first what lies last.
        for (has, part, which) in [(self.local, Part::Local, 1), (self.rest, Part::Rest, 0)] {
            let Some(word) = end.checked_sub(1).filter(|_| has) else { continue };
            let views = self.params[word].to_bits();
            let own = sizes.iter().enumerate().filter(|(view, _)| views >> view & 1 == 1);
            let start = word.saturating_sub(own.map(|(_, size)| size[which] as usize).sum());
            blocks.push((part, start..word));
            end = start;
        }
        blocks.reverse();
        blocks
    }

    /// The values of one part; of several views, those of the first that has it.
    pub fn part(&mut self, wanted: Part) -> &mut [f32] {
        let range = self.places().into_iter().find(|(part, _)| *part == wanted).map_or(0..0, |(_, r)| r);
        &mut self.params[range]
    }
}
