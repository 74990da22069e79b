//! Prints the hash of this machine, for comparison with `tests/proof/hash`.

fn main() {
    match dab_proof::all() {
        Ok(hash) => println!("{hash:016x}"),
        Err(failure) => {
            eprintln!("no hash: {failure:?}");
            std::process::exit(1);
        }
    }
}
