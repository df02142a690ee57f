//! `#[derive(Keys)]` of an enum: a table for each kind.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Error, Result, Variant};

use crate::attributes::{KeyField, TableAttributes, documentation, kebab_case};

pub(crate) fn generate(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let attributes = TableAttributes::of(&input.attrs)?;
    let Some(title) = &attributes.title else {
        return Err(Error::new_spanned(
            &input.ident,
            "`#[keys(title = …)]` has to say which table this is",
        ));
    };
    let kinds = data
        .variants
        .iter()
        .map(|variant| Kind::of(variant, &attributes));
    let kinds: Vec<Kind<'_>> = kinds.collect::<Result<_>>()?;
    let sections = kinds.iter().map(|kind| {
        let Kind {
            word, doc, keys, ..
        } = kind;
        quote! {
            &crate::schema::Section {
                title: concat!(#title, " kind = \"", #word, "\""),
                doc: #doc,
                keys: &[crate::schema::Key::kind(&[#word]), #(#keys),*],
            }
        }
    });
    let arms = kinds.iter().map(|kind| {
        let Kind {
            word,
            variant,
            names,
            reads,
            ..
        } = kind;
        quote! {
            Some(#word) => {
                #(let #names = #reads;)*
                Ok(Self::#variant { #(#names: #names?),* })
            }
        }
    });
    let (name, context, count) = (&input.ident, attributes.context(), kinds.len());
    Ok(quote! {
        impl #name {
            /// The table, by its kinds.
            pub(crate) const SECTIONS: [&'static crate::schema::Section; #count] = [#(#sections),*];

            /// Reads the keys of a table that was opened as one of the sections. All mistakes are reported
            /// together.
            pub(crate) fn read_keys(
                fields: &crate::document::Fields<'_>,
                #[allow(unused_variables, reason = "not every table has keys that need it")]
                context: #context,
            ) -> Result<Self, crate::document::Reported> {
                match fields.kind() {
                    #(#arms,)*
                    _ => Err(fields.at.wrong_kind("a table with another `kind`")),
                }
            }
        }
    })
}

/// A variant as a table.
struct Kind<'v> {
    word: String,
    doc: String,
    variant: &'v syn::Ident,
    keys: Vec<TokenStream>,
    names: Vec<&'v Option<syn::Ident>>,
    reads: Vec<TokenStream>,
}

impl<'v> Kind<'v> {
    fn of(variant: &'v Variant, all: &TableAttributes) -> Result<Self> {
        let own = TableAttributes::of(&variant.attrs)?;
        let first = own.first.as_ref().or(all.first.as_ref());
        let mut kind = Self {
            word: kebab_case(&variant.ident.to_string()),
            doc: documentation(&variant.attrs),
            variant: &variant.ident,
            keys: first
                .into_iter()
                .flatten()
                .map(|key| quote!(#key))
                .collect(),
            names: Vec::new(),
            reads: Vec::new(),
        };
        if kind.doc.is_empty() {
            return Err(Error::new_spanned(
                variant,
                "a kind needs documentation: it is the reference's text",
            ));
        }
        for field in &variant.fields {
            let key = KeyField::of(field)?;
            kind.keys.extend(key.keys);
            kind.names.push(&field.ident);
            kind.reads.push(key.read);
        }
        Ok(kind)
    }
}
