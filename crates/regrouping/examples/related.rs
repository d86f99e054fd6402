//! Which blocks are read one after another, again and again: the access graph and its partitions.
//!
//!     cargo run -p agewell-regrouping --example related
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_regrouping::RelatedBlocks;

fn main() {
    let mut related = RelatedBlocks::new(1000, 8);
    for round in 0..20 {
        // Three blocks that a query reads together, and something that is read once.
        for block in [17, 400, 833, 100 + round] {
            related.read(block);
        }
    }
    let partition = related.partitions().of(400).expect("it has been read");
    let mut order = Vec::new();
    related.lay_out(partition, &mut order);
    println!("block 400 belongs to {order:?}");
}
