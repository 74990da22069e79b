//! Where addresses lead: windows for parameters, shared and local memory, and global memory as it is.
//!
//! The windows lie below 4 GiB, where the process has no allocations, so that an address fits 32 bits and a generic access
//! knows its space.

use super::{Block, Outcome};

/// Shared memory of the block.
pub const SHARED: u64 = 0x0100_0000;
/// Local memory of the thread.
pub const LOCAL: u64 = 0x0200_0000;
/// Parameters of the launch.
pub const PARAMETERS: u64 = 0x0400_0000;

/// Memory that an access may touch.
pub(super) enum Place<'b> {
    /// A part of what the machine holds for a block.
    Own(&'b mut [u8]),
    /// Global memory.
    Global(*mut u8),
    /// A parameter, which can only be read.
    Parameter(&'b [u8]),
}

/// An access of `bytes` has to start at a multiple of them, that of a vector at a multiple of the whole vector.
pub(super) fn aligned(address: u64, bytes: usize, thread: usize) -> Outcome {
    match address.is_multiple_of(bytes as u64) {
        true => Ok(()),
        false => {
            Err(format!("reaches {bytes} bytes at {address:#x} (thread {thread}), which are not aligned"))
        }
    }
}

impl Block<'_> {
    /// What `bytes` at `address` mean for a thread.
    pub(super) fn place(&mut self, address: u64, bytes: usize, thread: usize) -> Outcome<Place<'_>> {
        let outside =
            || format!("reaches {bytes} bytes at {address:#x} (thread {thread}), which nobody allocated");
        aligned(address, bytes, thread)?;
        if address >= 1 << 32 {
            self.check(address, bytes).ok_or_else(outside)?;
            return Ok(Place::Global(address as *mut u8));
        }
        let (base, memory) = match address {
            PARAMETERS.. => {
                let from = (address - PARAMETERS) as usize;
                let part = self.launch.parameters.get(from..from + bytes).ok_or_else(outside)?;
                return Ok(Place::Parameter(part));
            }
            LOCAL.. => {
                let own = self.entry.local_bytes;
                (LOCAL, &mut self.local[thread * own..(thread + 1) * own])
            }
            SHARED.. => (SHARED, self.shared.as_mut_slice()),
            _ => return Err(outside()),
        };
        let from = (address - base) as usize;
        memory.get_mut(from..from + bytes).map(Place::Own).ok_or_else(outside)
    }

    /// Whether global memory of this launch holds these bytes.
    fn check(&mut self, address: u64, bytes: usize) -> Option<()> {
        let end = address.checked_add(bytes as u64)?;
        if self.last.0 <= address && end <= self.last.1 {
            return Some(());
        }
        let allocations = &self.launch.allocations;
        let after = allocations.partition_point(|&(begin, _)| begin <= address);
        let found = *allocations.get(after.checked_sub(1)?)?;
        self.last = found;
        (end <= found.1).then_some(())
    }

    /// Up to eight bytes as a number.
    pub(super) fn read(&mut self, address: u64, bytes: usize, thread: usize) -> Outcome<u64> {
        let mut value = [0; 8];
        match self.place(address, bytes, thread)? {
            Place::Own(memory) => value[..bytes].copy_from_slice(memory),
            Place::Parameter(memory) => value[..bytes].copy_from_slice(memory),
            // SAFETY: `place` found these bytes in an allocation that lives as long as the launch.
            Place::Global(from) => unsafe { std::ptr::copy_nonoverlapping(from, value.as_mut_ptr(), bytes) },
        }
        Ok(u64::from_le_bytes(value))
    }

    /// The low `bytes` of a number.
    pub(super) fn put(&mut self, address: u64, bytes: usize, thread: usize, value: u64) -> Outcome {
        let value = value.to_le_bytes();
        match self.place(address, bytes, thread)? {
            Place::Own(memory) => memory.copy_from_slice(&value[..bytes]),
            Place::Parameter(_) => return Err("writes to a parameter".to_owned()),
            // SAFETY: as in `read`; kernels that write to the same bytes from two blocks race, as they do on a GPU.
            Place::Global(to) => unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), to, bytes) },
        }
        Ok(())
    }
}
