//! Prints the hash of this machine, for comparison with `tests/same-bits/hash`.

fn main() {
    match dab_same_bits::hash_of(dab_same_bits::INPUTS) {
        Ok(hash) => println!("{hash:016x}"),
        Err(failure) => {
            eprintln!("no hash: {failure:?}");
            std::process::exit(1);
        }
    }
}
