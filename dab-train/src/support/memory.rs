//! How much memory this process takes.

/// The most memory that this process ever held, in bytes, where the system tells: from Linux's /proc.
pub fn peak_bytes() -> Option<u64> {
    /// /proc counts in KiB.
    const KIB: u64 = 1024;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * KIB)
}
