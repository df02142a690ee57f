//! Declares the keys of a scenario's tables once: on the types that hold their values.
//!
//! The derives are for `weir-scenario` alone, whose `schema` and `document` they refer to. A type with
//! [`Keys`] is a table. It gets the table's `SECTION`, which the reader checks a file against and the
//! reference in `docs/scenario.md` is made of; `read`, which reads the table; and `KEYS` and `read_keys`, the
//! same where the table is a part of another one. Its `Serialize` writes the same fields.
//!
//! ```ignore
//! #[derive(Keys, Serialize)]
//! #[keys(title = "[live]", doc = "What only `weir run --live` needs to know.")]
//! pub struct LiveOptions {
//!     /// Which version of IP the hosts use.
//!     #[key(default = "ipv4")]
//!     pub address_family: AddressFamily,
//!     /// How many segments a host's stack may hand to its link at once.
//!     #[key(accepts = Accepts::Count(1, 65_535), absent = "as many as keep the rates faithful")]
//!     pub gso_segments: Option<u32>,
//! }
//!
//! #[derive(Word, Serialize)]
//! #[serde(rename_all = "kebab-case")]
//! pub enum AddressFamily {
//!     Ipv4,
//!     Ipv6,
//! }
//!
//! let options = LiveOptions::read(&at, ())?;
//! ```
//!
//! | of the type | meaning |
//! |---|---|
//! | `title` | how the table is written |
//! | `doc` | what it describes |
//! | `context` | the type of what readers of single keys are given beside the table |
//! | `with` | the type of a part whose keys stand in front, and which is read by itself |
//! | `check` | an expression of `table`, what was read: whether its values go together |
//! | `declares` | there are keys alone, which are read elsewhere |
//!
//! | of a field | meaning |
//! |---|---|
//! | its documentation | the key's meaning |
//! | `accepts` | what the key takes, where the field's type does not say |
//! | `default` | the value of a key that is absent, as it would be written |
//! | `absent` | what its absence means, in words: of an `Option`, or with `or` |
//! | `or` | the value of a key that is absent, where it is not written in a file |
//! | `read` | what reads the key's value `at` its place, where its type does not say |
//! | `by` | what reads the key from the whole table |
//! | `keys` | the type that declares the keys which `by` reads, instead of one with the field's name |
//! | `flatten` | the field's type is a part of the table, with keys of its own |
//! | `is` | the value of a field that is no key |
//! | `name` | the key's name, where it is not the field's |
//! | `then` | the type of a part whose keys stand behind it, and which another field's `by` reads |
//! | `first` | it stands before the keys of other fields |
//!
//! `or`, `read`, `by`, `is` and `check` are expressions; the last four give a `Result`. They may use the table's
//! `fields`, the `context`, and the fields above, each as the `Result` of reading it.
//!
//! A key without `default` and `absent` has to be written. An enum with [`Keys`] is a table with a `kind`:
//! each variant is one, in kebab case, with its fields as keys; the variant's documentation says what it
//! describes. A struct without `title` and `doc` is a part of another table.

mod attributes;
mod key;
mod kinds;
mod table;
mod word;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, Error, parse_macro_input};

/// A table of a scenario, with its keys.
#[proc_macro_derive(Keys, attributes(keys, key))]
pub fn derive_keys(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let generated = match &input.data {
        Data::Struct(data) => table::generate(&input, data),
        Data::Enum(data) => kinds::generate(&input, data),
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "a union has no keys")),
    };
    generated.unwrap_or_else(Error::into_compile_error).into()
}

/// A value that is one of several words: the variants' names in kebab case.
#[proc_macro_derive(Word)]
pub fn derive_word(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let generated = word::generate(&input);
    generated.unwrap_or_else(Error::into_compile_error).into()
}
