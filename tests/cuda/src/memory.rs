//! The memory of the stand-in: plain memory of the process, with a table of what is allocated.

use std::{
    alloc::{Layout, alloc, alloc_zeroed, dealloc},
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::record;

/// What `cuMemAlloc` promises is 256; rows of images want 512.
const ALIGNMENT: usize = 512;

/// Every byte of memory that nobody has written: CUDA promises nothing about it. In f16, bf16, f32 and f64 these bytes are NaN,
/// and as a whole number they are −1 or the largest one, so that a kernel that reads too early computes nonsense here, too.
pub const UNWRITTEN: u8 = 0xff;

#[derive(Default)]
struct Table {
    /// Bytes of each allocation, by its address.
    live: BTreeMap<u64, usize>,
    now: usize,
    most: usize,
    /// A copy for launches, made anew after a change.
    snapshot: Option<Arc<Allocations>>,
}

/// Begin and end of every allocation, in order.
pub type Allocations = Vec<(u64, u64)>;

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn table() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).expect("an allocation fits the address space")
}

/// Memory full of [`UNWRITTEN`]; 0 when there is none. Where kernels are only counted it is zero instead: networks that are
/// larger than this machine's memory can be counted as long as nobody writes to theirs.
#[must_use]
pub fn allocate(bytes: usize) -> u64 {
    if !record::runs() {
        return zeroed(bytes);
    }
    // SAFETY: the layout has a size of at least one byte, and so many are written where there is memory.
    let address = unsafe {
        let address = alloc(layout(bytes));
        if !address.is_null() {
            address.write_bytes(UNWRITTEN, bytes);
        }
        address
    };
    entered(address as u64, bytes)
}

/// Zeroed memory, as variables of a module are; 0 when there is none.
#[must_use]
pub fn zeroed(bytes: usize) -> u64 {
    // SAFETY: the layout has a size of at least one byte.
    entered(unsafe { alloc_zeroed(layout(bytes)) } as u64, bytes)
}

/// The address of an allocation, which the table has from now on.
fn entered(address: u64, bytes: usize) -> u64 {
    if address != 0 {
        let mut table = table();
        let table = table.get_or_insert_default();
        table.live.insert(address, bytes);
        table.now += bytes;
        table.most = table.most.max(table.now);
        table.snapshot = None;
    }
    address
}

/// Gives memory back; what was never allocated stays.
pub fn release(address: u64) {
    let mut table = table();
    let table = table.get_or_insert_default();
    if let Some(bytes) = table.live.remove(&address) {
        table.now -= bytes;
        table.snapshot = None;
        // SAFETY: the table had this address, so `allocate` made it with the same layout and nobody released it before.
        unsafe { dealloc(address as *mut u8, layout(bytes)) };
    }
}

/// Every allocation, as a launch sees them.
#[must_use]
pub fn allocations() -> Arc<Allocations> {
    let mut table = table();
    let table = table.get_or_insert_default();
    let live = &table.live;
    Arc::clone(table.snapshot.get_or_insert_with(|| {
        Arc::new(live.iter().map(|(&address, &bytes)| (address, address + bytes as u64)).collect())
    }))
}

/// Bytes allocated now, and at the time of the largest use.
#[must_use]
pub fn usage() -> [usize; 2] {
    table().as_ref().map_or([0; 2], |table| [table.now, table.most])
}
