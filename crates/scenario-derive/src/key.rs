//! Generates the description and the reader of a key from a field.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Error, ExprLit, Field, Fields, GenericArgument, Lit, LitStr, PathArguments, Result};
use syn::{Token, Type, punctuated::Punctuated, spanned::Spanned as _};

use crate::attributes::{KeyAttributes, documentation};

/// The fields of a table.
pub(crate) struct TableFields<'f> {
    pub(crate) names: Vec<&'f Ident>,
    /// For each field an expression of the type `Result<T, Reported>`, of `fields` and `context`.
    pub(crate) reads: Vec<TokenStream>,
    /// An expression of the type `&'static [Key]`.
    pub(crate) keys: TokenStream,
}

impl<'f> TableFields<'f> {
    /// `first` are the keys before those of the fields. The fields of a table that only `declares`
    /// its keys are not read.
    pub(crate) fn of(
        fields: &'f Fields,
        first: Option<TokenStream>,
        declares: bool,
    ) -> Result<Self> {
        let mut parts = Vec::from_iter(first);
        let (mut names, mut reads) = (Vec::new(), Vec::new());
        for field in fields {
            let Some(name) = &field.ident else {
                return Err(Error::new_spanned(field, "a key needs a name"));
            };
            let attributes = KeyAttributes::of(&field.attrs)?;
            let own = keys(field, name, &attributes)?;
            if attributes.first {
                parts.splice(0..0, own).for_each(drop)
            } else {
                parts.extend(own)
            }
            if !declares {
                names.push(name);
                reads.push(read(field, name, &attributes)?);
            }
        }
        let keys = quote! {{
            const PARTS: &[&[crate::schema::Key]] = &[#(#parts),*];
            &crate::schema::join::<{ crate::schema::count(PARTS) }>(PARTS)
        }};
        Ok(Self { names, reads, keys })
    }
}

/// Returns the keys of a field, as slices.
fn keys(field: &Field, name: &Ident, attributes: &KeyAttributes) -> Result<Vec<TokenStream>> {
    let of = &field.ty;
    if attributes.is.is_some() {
        return Ok(Vec::new());
    }
    if attributes.flatten {
        return Ok(vec![quote!(<#of>::KEYS)]);
    }
    if let Some(keys) = &attributes.keys {
        return Ok(vec![quote!(<#keys>::KEYS)]);
    }
    let doc = documentation(&field.attrs);
    if doc.is_empty() {
        return Err(Error::new(
            field.span(),
            "a key needs documentation: it is the reference's text",
        ));
    }
    let name = key_name(name, attributes);
    let inner = option_of(of).unwrap_or(of);
    let accepts = match &attributes.accepts {
        Some(accepts) => quote!(#accepts),
        None => quote!(<#inner as crate::schema::Accepted>::ACCEPTS),
    };
    let presence = match (&attributes.default, &attributes.absent) {
        (Some(_), Some(absent)) => {
            return Err(Error::new_spanned(
                absent,
                "a key with a default is never absent",
            ));
        }
        (Some(default), None) => {
            let default = literal(default)?;
            quote!(Default(#default))
        }
        (None, Some(absent)) => quote!(Optional(#absent)),
        (None, None) => quote!(Required),
    };
    let key = quote! {
        &[crate::schema::Key {
            name: #name,
            accepts: #accepts,
            presence: crate::schema::Presence::#presence,
            doc: #doc,
        }]
    };
    let then = attributes.then.as_ref().map(|then| quote!(<#then>::KEYS));
    Ok([Some(key), then].into_iter().flatten().collect())
}

/// Returns the expression that reads a field.
fn read(field: &Field, name: &Ident, attributes: &KeyAttributes) -> Result<TokenStream> {
    let of = &field.ty;
    if let Some(value) = &attributes.is {
        return Ok(quote!(#value));
    }
    if attributes.flatten {
        return Ok(quote!(<#of>::read_keys(fields, context)));
    }
    if let Some(by) = &attributes.by {
        return Ok(quote!(#by));
    }
    if let Some(keys) = &attributes.keys {
        return Err(Error::new_spanned(
            keys,
            "`keys` needs `by`, which reads them",
        ));
    }
    let is_optional = attributes.default.is_none() && option_of(of).is_some();
    if attributes.absent.is_some() != (is_optional || attributes.or.is_some()) {
        return Err(Error::new_spanned(
            of,
            "what may be absent is an `Option`, or has `or`; and `absent` says what that means",
        ));
    }
    let name = key_name(name, attributes);
    Ok(match (&attributes.read, &attributes.or) {
        (Some(read), Some(or)) => {
            quote!(fields.at(#name).as_ref().map_or_else(|| Ok(#or), |at| #read))
        }
        (Some(read), None) if is_optional => {
            quote!(fields.at(#name).as_ref().map(|at| #read).transpose())
        }
        (Some(read), None) => quote!(fields.needed(#name).and_then(|at| { let at = &at; #read })),
        (None, Some(or)) => quote!(fields.optional(#name).map(|value| value.unwrap_or(#or))),
        (None, None) if is_optional => quote!(fields.optional(#name)),
        (None, None) => quote!(fields.get(#name)),
    })
}

fn key_name(name: &Ident, attributes: &KeyAttributes) -> String {
    let named = attributes.name.as_ref().map(LitStr::value);
    named.unwrap_or_else(|| name.to_string())
}

/// Returns a default for the schema.
fn literal(default: &ExprLit) -> Result<TokenStream> {
    match &default.lit {
        Lit::Str(text) => Ok(quote!(crate::schema::Literal::Text(#text))),
        Lit::Int(number) => Ok(quote!(crate::schema::Literal::Integer(#number))),
        Lit::Bool(value) => Ok(quote!(crate::schema::Literal::Boolean(#value))),
        other => Err(Error::new_spanned(
            other,
            "a default is text, a whole number, true or false",
        )),
    }
}

/// Returns the type in an `Option`.
fn option_of(of: &Type) -> Option<&Type> {
    let Type::Path(path) = of else { return None };
    let last = path.path.segments.last()?;
    if last.ident != "Option" {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    let arguments: &Punctuated<_, Token![,]> = &arguments.args;
    match arguments.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}
