//! The functions of `libcuda.so` that burn's CUDA backend calls: one device, whose memory is the process's.
//!
//! Streams and events are numbers, since every call returns when its work is done. Results are codes of `cuda.h`.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    machine::Launch,
    memory,
    ptx::{Module, parse},
    record::{self, Copied, setting},
};

const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const INVALID_DEVICE: c_int = 101;
const INVALID_PTX: c_int = 218;
const NOT_FOUND: c_int = 500;
const LAUNCH_FAILED: c_int = 719;

/// The only context, and the first of the numbers that stand for streams and events.
const CONTEXT: usize = 0x1000;
/// What every measurement of time says, in milliseconds: nothing here is about time.
const MILLISECONDS: f32 = 0.01;

static MODULES: Mutex<Vec<Arc<Module>>> = Mutex::new(Vec::new());

/// A kernel of a module.
struct Function {
    module: Arc<Module>,
    name: String,
}

/// Writes a result of a call.
fn put<T>(to: *mut T, value: T) -> c_int {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null; that it can be written to is what cuda.h asks of the caller.
    unsafe { to.write(value) };
    SUCCESS
}

fn copy(to: u64, from: u64, bytes: usize, way: Copied) -> c_int {
    record::copied(way, bytes);
    // SAFETY: cuda.h asks the caller for `bytes` at both; device addresses are addresses of this process.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    SUCCESS
}

fn text<'a>(from: *const c_char) -> &'a str {
    // SAFETY: cuda.h asks for a string that ends with zero and lives during the call.
    unsafe { CStr::from_ptr(from) }.to_str().unwrap_or("")
}

fn sm() -> i32 {
    setting("DAB_CUDA_SM", 80) as i32
}

fn bytes_of_device() -> usize {
    (setting("DAB_CUDA_GB", 16) as usize) << 30
}

/// A fresh number for a stream or an event.
fn handle(to: *mut usize) -> c_int {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(CONTEXT);
    put(to, NEXT.fetch_add(16, std::sync::atomic::Ordering::Relaxed) + 16)
}

macro_rules! driver {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),*) $body:block)*) => {
        $($(#[$doc])* #[unsafe(no_mangle)] pub extern "C" fn $name($($argument: $ty),*) -> c_int $body)*
    };
}

driver! {
    fn cuInit(_flags: c_uint) { SUCCESS }
    fn cuDriverGetVersion(to: *mut c_int) { put(to, setting("DAB_CUDA_DRIVER", 12090) as c_int) }
    fn cuDeviceGetCount(to: *mut c_int) { put(to, 1) }
    fn cuDeviceGet(to: *mut c_int, index: c_int) { if index == 0 { put(to, 0) } else { INVALID_DEVICE } }
    fn cuDeviceGetName(to: *mut c_char, length: c_int, _device: c_int) {
        string(to, length, &format!("NVIDIA stand-in sm_{}", sm()))
    }
    fn cuDeviceGetPCIBusId(to: *mut c_char, length: c_int, _device: c_int) { string(to, length, "0000:01:00.0") }
    fn cuDeviceGetUuid_v2(to: *mut [u8; 16], _device: c_int) { put(to, [7; 16]) }
    fn cuDeviceTotalMem_v2(to: *mut usize, _device: c_int) { put(to, bytes_of_device()) }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        put(free, bytes_of_device().saturating_sub(memory::usage()[0]));
        put(total, bytes_of_device())
    }
    fn cuDeviceGetAttribute(to: *mut c_int, attribute: c_int, _device: c_int) { put(to, property(attribute)) }
    fn cuDevicePrimaryCtxRetain(to: *mut usize, _device: c_int) { put(to, CONTEXT) }
    fn cuDevicePrimaryCtxRelease_v2(_device: c_int) { SUCCESS }
    fn cuCtxSetCurrent(_context: usize) { SUCCESS }
    fn cuCtxGetCurrent(to: *mut usize) { put(to, CONTEXT) }
    fn cuCtxSynchronize() { waited() }
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) { put(least, 0); put(greatest, -5) }
    fn cuStreamCreate(to: *mut usize, _flags: c_uint) { handle(to) }
    fn cuStreamCreateWithPriority(to: *mut usize, _flags: c_uint, _priority: c_int) { handle(to) }
    fn cuStreamSynchronize(_stream: usize) { waited() }
    fn cuStreamWaitEvent(_stream: usize, _event: usize, _flags: c_uint) { SUCCESS }
    fn cuStreamDestroy_v2(_stream: usize) { SUCCESS }
    fn cuStreamIsCapturing(_stream: usize, to: *mut c_int) { put(to, 0) }
    fn cuEventCreate(to: *mut usize, _flags: c_uint) { handle(to) }
    fn cuEventRecord(_event: usize, _stream: usize) { SUCCESS }
    fn cuEventQuery(_event: usize) { SUCCESS }
    fn cuEventSynchronize(_event: usize) { waited() }
    fn cuEventElapsedTime(to: *mut f32, _from: usize, _until: usize) { put(to, MILLISECONDS) }
    fn cuEventElapsedTime_v2(to: *mut f32, _from: usize, _until: usize) { put(to, MILLISECONDS) }
    fn cuEventDestroy_v2(_event: usize) { SUCCESS }
    fn cuMemAlloc_v2(to: *mut u64, bytes: usize) {
        match memory::allocate(bytes) {
            0 => OUT_OF_MEMORY,
            address => put(to, address),
        }
    }
    fn cuMemAllocAsync(to: *mut u64, bytes: usize, _stream: usize) { cuMemAlloc_v2(to, bytes) }
    fn cuMemFree_v2(address: u64) { memory::release(address); SUCCESS }
    fn cuMemFreeAsync(address: u64, _stream: usize) { cuMemFree_v2(address) }
    fn cuMemAllocHost_v2(to: *mut u64, bytes: usize) { put(to, host(bytes)) }
    fn cuMemFreeHost(address: u64) {
        // SAFETY: `host` made it with malloc, and the caller gives it back once.
        unsafe { free(address as *mut c_void) };
        SUCCESS
    }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, _stream: usize) { copy(to, from, bytes, Copied::ToDevice) }
    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, _stream: usize) { copy(to, from, bytes, Copied::FromDevice) }
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, _stream: usize) { copy(to, from, bytes, Copied::Within) }
    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) { copy(to, from, bytes, Copied::ToDevice) }
    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) { copy(to, from, bytes, Copied::FromDevice) }
    fn cuMemcpy2DAsync_v2(copy: *const Copy2d, _stream: usize) { copy_rows(copy) }
    fn cuMemsetD8_v2(to: u64, value: u8, bytes: usize) { fill(to, value, bytes) }
    fn cuMemsetD8Async(to: u64, value: u8, bytes: usize, _stream: usize) { fill(to, value, bytes) }
    fn cuModuleLoadData(to: *mut usize, image: *const c_char) { load(to, text(image)) }
    fn cuModuleUnload(_module: usize) { SUCCESS }
    fn cuModuleGetFunction(to: *mut *const c_void, module: usize, name: *const c_char) {
        let modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
        let found = module.checked_sub(1).and_then(|at| modules.get(at)).filter(|m| m.entries.contains_key(text(name)));
        match found {
            None => NOT_FOUND,
            Some(module) => {
                let function = Function { module: Arc::clone(module), name: text(name).to_owned() };
                // Never freed: kernels live as long as the program, as their modules do.
                put(to, Box::into_raw(Box::new(function)).cast_const().cast())
            }
        }
    }
    fn cuFuncSetAttribute(_function: usize, _attribute: c_int, _value: c_int) { SUCCESS }
    /// Returns when the kernel has run.
    fn cuLaunchKernel(
        function: *const c_void, x: c_uint, y: c_uint, z: c_uint, tx: c_uint, ty: c_uint, tz: c_uint,
        shared: c_uint, _stream: usize, parameters: *const *const c_void, _extra: usize
    ) {
        // SAFETY: `cuModuleGetFunction` made it, and never frees it.
        let function = unsafe { &*function.cast::<Function>() };
        launch(function, [x, y, z], [tx, ty, tz], shared as usize, parameters)
    }
    fn cuGetErrorName(_code: c_int, to: *mut *const c_char) { put(to, c"STAND_IN".as_ptr()) }
    fn cuGetErrorString(_code: c_int, to: *mut *const c_char) { put(to, c"see standard error".as_ptr()) }
}

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(address: *mut c_void);
    fn atexit(at: extern "C" fn()) -> c_int;
}

fn host(bytes: usize) -> u64 {
    // SAFETY: malloc takes any size.
    unsafe { malloc(bytes.max(1)) as u64 }
}

fn fill(to: u64, value: u8, bytes: usize) -> c_int {
    // SAFETY: cuda.h asks the caller for `bytes` there.
    unsafe { std::ptr::write_bytes(to as *mut u8, value, bytes) };
    SUCCESS
}

fn string(to: *mut c_char, length: c_int, text: &str) -> c_int {
    let bytes = text.bytes().chain([0]).take(length.max(0) as usize);
    // SAFETY: cuda.h asks for `length` writable characters.
    bytes.enumerate().for_each(|(at, byte)| unsafe { to.add(at).write(byte as c_char) });
    SUCCESS
}

/// An attribute of the device, by its number in `cuda.h`; 0 for those that nobody here needs.
fn property(attribute: c_int) -> c_int {
    match attribute {
        1..=3 => 1024,   // threads of a block, along x and y
        4 => 64,         // along z
        5 => c_int::MAX, // blocks along x
        6 | 7 => 65535,  // along y, z
        8 => 49152,      // shared memory of a block
        10 => 32,        // lanes of a warp
        16 => 108,       // multiprocessors
        75 => sm() / 10, // compute capability
        76 => sm() % 10,
        97 if sm() >= 90 => 232_448, // shared memory of a block, if asked for
        97 if sm() >= 80 => 166_912,
        97 => 65536,
        115 => 1, // memory pools
        _ => 0,
    }
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub struct Copy2d {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
}

#[repr(C)]
struct Side {
    x: usize,
    y: usize,
    /// 1 for the host.
    kind: c_int,
    host: u64,
    device: u64,
    array: usize,
    pitch: usize,
}

impl Side {
    fn row(&self, row: usize) -> u64 {
        let base = if self.kind == 1 { self.host } else { self.device };
        base + ((self.y + row) * self.pitch + self.x) as u64
    }
}

fn copy_rows(what: *const Copy2d) -> c_int {
    // SAFETY: cuda.h asks for a description that lives during the call.
    let what = unsafe { &*what };
    let way = match (what.from.kind, what.to.kind) {
        (1, _) => Copied::ToDevice,
        (_, 1) => Copied::FromDevice,
        _ => Copied::Within,
    };
    (0..what.height).for_each(|row| _ = copy(what.to.row(row), what.from.row(row), what.width, way));
    SUCCESS
}

fn waited() -> c_int {
    record::now();
    SUCCESS
}

extern "C" fn write_record() {
    record::write();
}

fn load(to: *mut usize, ptx: &str) -> c_int {
    let number = record::module(ptx);
    if number == 1 {
        // SAFETY: the function is of this library, which a program that loaded it keeps.
        unsafe { atexit(write_record) };
    }
    match parse::module(ptx) {
        Ok(module) => {
            let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
            modules.push(Arc::new(module));
            put(to, modules.len())
        }
        Err(error) => {
            eprintln!("stand-in: module {number}: {error}");
            INVALID_PTX
        }
    }
}

fn launch(
    function: &Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared: usize,
    parameters: *const *const c_void,
) -> c_int {
    let entry = &function.module.entries[&function.name];
    let mut bytes = vec![0_u8; entry.parameter_bytes];
    for (index, &(offset, length)) in entry.parameters.iter().enumerate() {
        // SAFETY: cuda.h asks for one pointer per parameter of the kernel, each to as many bytes as the parameter has.
        unsafe {
            let from = (*parameters.add(index)).cast::<u8>();
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr().add(offset), length);
        }
    }
    let threads = grid.iter().chain(&block).map(|&side| u64::from(side)).product();
    record::launch(&function.name, threads);
    if !record::runs() {
        return SUCCESS;
    }
    let workers = setting("DAB_CUDA_THREADS", 2) as usize;
    match Launch::new(grid, block, shared, bytes).run(entry, workers) {
        Ok(()) => SUCCESS,
        Err(error) => {
            eprintln!("stand-in: {error}");
            LAUNCH_FAILED
        }
    }
}
