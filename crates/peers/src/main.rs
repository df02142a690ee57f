//! The stacks that Weir is measured against, and the floor under them all.

fn main() {}
