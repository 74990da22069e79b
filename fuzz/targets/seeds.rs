//! Writes the first inputs of a target.   seeds TARGET FOLDER

use std::path::Path;

use dab_fuzz::pool;
use dab_fuzz::specs::Random;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, target, folder] = &arguments[..] else { panic!("usage: seeds TARGET FOLDER") };
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(Path::new(folder).join(name), bytes).expect("a folder that can be written to");
    };
    if target == "artifact" {
        for (name, bytes) in pool::models() {
            write(name, bytes);
        }
        return;
    }
    #[cfg(feature = "readers")]
    if target == "readers" {
        for (name, bytes) in dab_fuzz::readers::seeds() {
            write(&name, &bytes);
        }
        return;
    }
    let mut random = Random(target.len() as u64);
    for i in 0..16 {
        let bytes: Vec<u8> = (0..64 << (i % 4)).map(|_| random.bits() as u8).collect();
        write(&format!("random-{i}"), &bytes);
    }
}
