//! The ways to one model: dab-core, the C interface linked into this program, and libdab.so.

use core::ffi::c_void;
use std::path::Path;

use dab::assess::{Assessment, dab_predict};
use dab::model::{DAB_MODEL_BYTES, Handle, dab_model_init};
use dab::status::{DAB_ERR_NON_FINITE, DAB_OK};
use dab_core::{Model, Verdict};
use libloading::Library;

type Init = unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize, *mut *mut Handle) -> i32;
type Predict = unsafe extern "C" fn(
    *const Handle,
    *const f32,
    usize,
    *mut f32,
    usize,
    *mut c_void,
    usize,
    *mut Assessment,
) -> i32;

/// A way to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// dab-core.
    Core,
    /// The C interface, as libdab.a has it.
    Static,
    /// The C interface of libdab.so.
    Shared,
}

impl Face {
    /// All of them.
    const ALL: [Self; 3] = [Self::Core, Self::Static, Self::Shared];

    /// Its name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Static => "static",
            Self::Shared => "shared",
        }
    }

    /// The face of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|face| face.name() == name)
    }
}

/// The functions behind the faces.
pub struct Faces {
    shared: Option<(Init, Predict, Library)>,
}

impl Faces {
    /// The faces that there are: `library` is a libdab.so.
    ///
    /// # Panics
    /// When there is no library in that file.
    #[must_use]
    pub fn new(library: Option<&Path>) -> Self {
        let shared = library.map(|path| {
            // SAFETY: loading libdab.so runs no code of it; both symbols have the types of dab.h.
            unsafe {
                let library = Library::new(path).expect("libdab.so");
                let init = *library.get::<Init>(b"dab_model_init").expect("dab_model_init");
                let predict = *library.get::<Predict>(b"dab_predict").expect("dab_predict");
                (init, predict, library)
            }
        });
        Self { shared }
    }

    /// Face number `index`, one after the other.
    #[must_use]
    pub fn turn(&self, index: u64) -> Face {
        let count = if self.shared.is_some() { 3 } else { 2 };
        // Not in step with the models.
        Face::ALL[(index / 4 % count) as usize]
    }

    /// Their names.
    #[must_use]
    pub fn names(&self) -> String {
        let shared = if self.shared.is_some() { ", libdab.so" } else { "" };
        format!("dab-core, its C interface{shared}")
    }

    /// A model behind `face`.
    ///
    /// # Panics
    /// When the model is refused, or there is no such library.
    #[must_use]
    pub fn open(&self, face: Face, artifact: &'static [u8]) -> Asked {
        let (init, predict): (Init, Predict) = match (face, &self.shared) {
            (Face::Core, _) => return Asked::Core(Box::new(Model::from_bytes(artifact).expect("a model"))),
            (Face::Static, _) => (dab_model_init, dab_predict),
            (Face::Shared, Some((init, predict, _))) => (*init, *predict),
            (Face::Shared, None) => panic!("--library says where libdab.so is"),
        };
        let mut storage = Box::new([0u64; DAB_MODEL_BYTES / 8]);
        let mut handle = core::ptr::null_mut();
        let (place, bytes) = (storage.as_mut_ptr().cast(), artifact.as_ptr().cast());
        // SAFETY: storage and artifact have the sizes that are given; both stay as long as `Asked`.
        let status = unsafe { init(place, DAB_MODEL_BYTES, bytes, artifact.len(), &mut handle) };
        assert_eq!(status, DAB_OK);
        Asked::C { _storage: storage, handle, predict }
    }
}

/// A model that can be asked.
pub enum Asked {
    /// Of dab-core.
    Core(Box<Model<'static>>),
    /// Behind the C interface.
    C {
        /// Where it lies.
        _storage: Box<[u64; DAB_MODEL_BYTES / 8]>,
        /// The model.
        handle: *mut Handle,
        /// How it is asked.
        predict: Predict,
    },
}

impl Asked {
    /// The words of the assessment, and the outputs; `None` for an input that is not finite.
    ///
    /// # Panics
    /// For any other refusal.
    pub fn predict(&mut self, input: &[f32], outputs: &mut [f32], scratch: &mut [f32]) -> Option<[u32; 6]> {
        match self {
            Self::Core(model) => {
                let a = model.predict_into(input, outputs, scratch).ok()?;
                let verdict = match a.verdict {
                    None => 0,
                    Some(Verdict::Familiar) => 1,
                    Some(Verdict::Ambiguous) => 2,
                    Some(Verdict::Doubtful) => 3,
                    Some(Verdict::Unfamiliar) => 4,
                };
                let (p, score) = (a.p_value.unwrap_or(-1.0), a.score());
                let [u, p, near, score] = [a.uncertainty, p, a.nearest_distance, score].map(f32::to_bits);
                Some([u, p, verdict, a.nearest as u32, near, score])
            }
            Self::C { handle, predict, .. } => {
                // SAFETY: every member of the struct is a number.
                let mut a: Assessment = unsafe { core::mem::zeroed() };
                a.size = size_of::<Assessment>() as u32;
                let (values, floats) = (outputs.as_mut_ptr(), scratch.as_mut_ptr().cast());
                // SAFETY: every slice has the length that is given, and the model lives as long as `self`.
                let status = unsafe {
                    predict(
                        *handle,
                        input.as_ptr(),
                        input.len(),
                        values,
                        outputs.len(),
                        floats,
                        size_of_val(scratch),
                        &mut a,
                    )
                };
                if status == DAB_ERR_NON_FINITE {
                    return None;
                }
                assert_eq!(status, DAB_OK);
                let [u, p, near, score] =
                    [a.uncertainty, a.p_value, a.nearest_distance, a.score].map(f32::to_bits);
                Some([u, p, a.verdict.cast_unsigned(), a.nearest, near, score])
            }
        }
    }
}
