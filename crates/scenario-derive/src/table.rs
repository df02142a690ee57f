//! `#[derive(Keys)]` of a struct: one table.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataStruct, DeriveInput, Error, Result};

use crate::attributes::{KeyField, TableAttributes};

pub(crate) fn generate(input: &DeriveInput, data: &DataStruct) -> Result<TokenStream> {
    let attributes = TableAttributes::of(&input.attrs)?;
    let section = match (&attributes.title, &attributes.doc) {
        (Some(title), Some(doc)) => Some(quote! {
            /// The table.
            pub(crate) const SECTION: &'static crate::schema::Section = &crate::schema::Section {
                title: #title,
                doc: #doc,
                keys: &Self::KEYS,
            };
        }),
        (None, None) => None,
        _ => {
            return Err(Error::new_spanned(
                &input.ident,
                "a table of its own has a `title` and a `doc`, a part of another one has neither",
            ));
        }
    };
    let mut keys: Vec<TokenStream> = Vec::new();
    for key in attributes.first.iter().flatten() {
        keys.push(quote!(#key));
    }
    let (mut names, mut reads) = (Vec::new(), Vec::new());
    for field in &data.fields {
        let key = KeyField::of(field)?;
        if key.is_first {
            keys.splice(0..0, key.keys);
        } else {
            keys.extend(key.keys);
        }
        names.push(&field.ident);
        reads.push(key.read);
    }
    let (name, context, count) = (&input.ident, attributes.context(), keys.len());
    Ok(quote! {
        impl #name {
            #section

            /// The keys.
            pub(crate) const KEYS: [crate::schema::Key; #count] = [#(#keys),*];

            /// Reads the keys. All mistakes are reported together.
            pub(crate) fn read_keys(
                fields: &crate::document::Fields<'_>,
                #[allow(unused_variables, reason = "not every table has keys that need it")]
                context: #context,
            ) -> Result<Self, crate::document::Reported> {
                #(let #names = #reads;)*
                Ok(Self { #(#names: #names?),* })
            }
        }
    })
}
