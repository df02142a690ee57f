//! Generates `#[derive(Keys)]` of a struct: one table.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataStruct, DeriveInput, Error, Result};

use crate::attributes::TableAttributes;
use crate::key::TableFields;

pub(crate) fn generate(input: &DeriveInput, data: &DataStruct) -> Result<TokenStream> {
    let attributes = TableAttributes::of(&input.attrs)?;
    let with = attributes.with.as_ref().map(|with| quote!(<#with>::KEYS));
    let TableFields { names, reads, keys } =
        TableFields::of(&data.fields, with, attributes.declares)?;
    let (context, check) = (attributes.context(), attributes.check());
    // A type with a lifetime borrows values of the file.
    let lifetime = input.generics.lifetimes().next();
    let lifetime = lifetime.map(|parameter| &parameter.lifetime);
    let generics = lifetime.map(|lifetime| quote!(<#lifetime>));
    let file = lifetime.map_or_else(|| quote!('_), |lifetime| quote!(#lifetime));
    let section = match (&attributes.title, &attributes.doc) {
        (Some(title), Some(doc)) => Some(quote! {
            /// The table.
            pub(crate) const SECTION: &'static crate::schema::Section = &crate::schema::Section {
                title: #title,
                doc: #doc,
                keys: Self::KEYS,
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
    let read = section.as_ref().map(|_| {
        quote! {
            /// Reads the table.
            #[allow(dead_code, reason = "some tables are opened for more than their keys")]
            pub(crate) fn read(
                at: &crate::document::Cursor<#file>,
                context: #context,
            ) -> Result<Self, crate::document::Reported> {
                Self::read_keys(&crate::schema::Fields::open(at.clone(), Self::SECTION)?, context)
            }
        }
    });
    let readers = (!attributes.declares).then(|| {
        quote! {
            #read

            /// Reads the keys. All mistakes are reported together.
            pub(crate) fn read_keys(
                fields: &crate::schema::Fields<#file>,
                #[allow(unused_variables, reason = "not every table has keys that need it")]
                context: #context,
            ) -> Result<Self, crate::document::Reported> {
                #(let #names = #reads;)*
                let table = Self { #(#names: #names?),* };
                #check
                Ok(table)
            }
        }
    });
    let name = &input.ident;
    Ok(quote! {
        impl #generics #name #generics {
            /// The keys.
            pub(crate) const KEYS: &'static [crate::schema::Key] = #keys;

            #section
            #readers
        }
    })
}
