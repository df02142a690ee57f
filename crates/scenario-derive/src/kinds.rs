//! Generates `#[derive(Keys)]` of an enum: a table for each kind.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Error, Result};

use crate::attributes::{TableAttributes, documentation, kebab_case};
use crate::key::TableFields;

pub(crate) fn generate(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let attributes = TableAttributes::of(&input.attrs)?;
    let Some(title) = &attributes.title else {
        return Err(Error::new_spanned(
            &input.ident,
            "`#[keys(title = …)]` has to say which table this is",
        ));
    };
    let (mut sections, mut arms) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        let doc = documentation(&variant.attrs);
        if doc.is_empty() {
            return Err(Error::new_spanned(
                variant,
                "a kind needs documentation: it is the reference's text",
            ));
        }
        let (kind, word) = (&variant.ident, kebab_case(&variant.ident.to_string()));
        let own = TableAttributes::of(&variant.attrs)?;
        let with = own.with.as_ref().or(attributes.with.as_ref());
        let with = with.map(|with| quote!(, <#with>::KEYS));
        let first = quote!(&[crate::schema::Key::kind(&[#word])] #with);
        let TableFields { names, reads, keys } =
            TableFields::of(&variant.fields, Some(first), false)?;
        sections.push(quote! {
            &crate::schema::Section {
                title: concat!(#title, " kind = \"", #word, "\""),
                doc: #doc,
                keys: #keys,
            }
        });
        arms.push(quote! {
            Some(#word) => {
                #(let #names = #reads;)*
                Self::#kind { #(#names: #names?),* }
            }
        });
    }
    let (name, count) = (&input.ident, sections.len());
    let (context, check) = (attributes.context(), attributes.check());
    Ok(quote! {
        impl #name {
            /// The sections of the table, by kind.
            pub(crate) const SECTIONS: [&'static crate::schema::Section; #count] = [#(#sections),*];

            /// Reads the keys of a table that was opened as one of the sections. All mistakes are
            /// reported together.
            pub(crate) fn read_keys(
                fields: &crate::schema::Fields<'_>,
                #[allow(unused_variables, reason = "not every table has keys that need it")]
                context: #context,
            ) -> Result<Self, crate::document::Reported> {
                let table = match fields.section.kind() {
                    #(#arms)*
                    _ => return Err(fields.at.wrong_kind("a table with another `kind`")),
                };
                #check
                Ok(table)
            }
        }
    })
}
