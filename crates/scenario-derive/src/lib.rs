//! Derive macros that declare the keys of a scenario's tables on the types that hold their values.
//!
//! The derives are for `weir-scenario` alone, and refer to its modules `schema` and `document`. A
//! type with [`Keys`] is a table. It gets three items: `SECTION`, which the reader checks a file
//! against and from which the reference in `docs/scenario.md` is generated; `read`, which reads the
//! table; and `KEYS` and `read_keys`, the same for a table that is a part of another one. Its
//! `Serialize` writes the same fields.
//!
//! ```ignore
//! #[derive(Keys, Serialize)]
//! #[keys(title = "[live]", doc = "Settings of `weir run --live`.")]
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
//! | `title` | the table's heading |
//! | `doc` | the table's description |
//! | `context` | the type of the extra argument of the keys' readers |
//! | `with` | the type of a part whose keys come first, and which is read separately |
//! | `check` | an expression of `table`, the value read: whether its values are consistent |
//! | `declares` | the type has keys only, which are read elsewhere |
//!
//! | of a field | meaning |
//! |---|---|
//! | its documentation | the key's meaning |
//! | `accepts` | the accepted values, if the field's type does not define them |
//! | `default` | the value of an absent key, as written in a file |
//! | `absent` | the meaning of an absent key, as text: for an `Option`, or with `or` |
//! | `or` | the value of an absent key, if a file cannot express it |
//! | `read` | the reader of the key's value `at` its position, if its type does not define it |
//! | `by` | the reader of the key from the whole table |
//! | `keys` | the type that declares the keys which `by` reads, instead of one with the field's name |
//! | `flatten` | the field's type is a part of the table, with keys of its own |
//! | `is` | the value of a field that is not a key |
//! | `name` | the key's name, if it is not the field's |
//! | `then` | the type of a part whose keys follow, and which another field's `by` reads |
//! | `first` | the key comes before the keys of other fields |
//!
//! `or`, `read`, `by`, `is` and `check` are expressions; the last four return a `Result`. They may
//! use the table's `fields`, the `context`, and the fields above, each as the `Result` of reading
//! it.
//!
//! A key without `default` and `absent` is required. An enum with [`Keys`] is a table with a
//! `kind`: each variant is one, in kebab case, with its fields as keys. The variant's documentation
//! is the description. A struct without `title` and `doc` is a part of another table.

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

/// Derives a value that is one of several words: the variants' names in kebab case.
#[proc_macro_derive(Word)]
pub fn derive_word(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let generated = word::generate(&input);
    generated.unwrap_or_else(Error::into_compile_error).into()
}
