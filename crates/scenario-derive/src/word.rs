//! Generates `#[derive(Word)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

use crate::attributes::kebab_case;

pub(crate) fn generate(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "words are an enum's variants",
        ));
    };
    let mut words = Vec::new();
    let mut variants = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, "a word holds nothing"));
        }
        words.push(kebab_case(&variant.ident.to_string()));
        variants.push(&variant.ident);
    }
    let name = &input.ident;
    Ok(quote! {
        impl crate::schema::Accepted for #name {
            const ACCEPTS: crate::schema::Accepts = crate::schema::Accepts::Word(&[#(#words),*]);
        }

        impl crate::schema::FromScalar for #name {
            fn from_scalar(scalar: crate::schema::Scalar) -> Option<Self> {
                match scalar {
                    crate::schema::Scalar::Text(text) => match text.as_str() {
                        #(#words => Some(Self::#variants),)*
                        _ => None,
                    },
                    _ => None,
                }
            }
        }
    })
}
