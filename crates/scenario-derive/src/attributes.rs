//! Parses the attributes of types, variants and fields.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Result, Type};

/// `#[keys(…)]` of a type or a variant.
#[derive(Default)]
pub(crate) struct TableAttributes {
    pub(crate) title: Option<Expr>,
    pub(crate) doc: Option<Expr>,
    pub(crate) with: Option<Type>,
    pub(crate) check: Option<Expr>,
    pub(crate) declares: bool,
    context: Option<Type>,
}

impl TableAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        each(attributes, "keys", |name, meta| {
            match name {
                "title" => found.title = Some(meta.value()?.parse()?),
                "doc" => found.doc = Some(meta.value()?.parse()?),
                "with" => found.with = Some(meta.value()?.parse()?),
                "check" => found.check = Some(meta.value()?.parse()?),
                "declares" => found.declares = true,
                "context" => found.context = Some(meta.value()?.parse()?),
                _ => {
                    return Err(
                        meta.error("it takes title, doc, with, check, declares and context")
                    );
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the type of the context: generic if no key needs one.
    pub(crate) fn context(&self) -> TokenStream {
        match &self.context {
            Some(context) => context.to_token_stream(),
            None => quote!(impl Copy),
        }
    }

    /// Returns the check of the values read.
    pub(crate) fn check(&self) -> Option<TokenStream> {
        let check = self.check.as_ref()?;
        Some(quote!(#check?;))
    }
}

/// `#[key(…)]` of a field.
#[derive(Default)]
pub(crate) struct KeyAttributes {
    pub(crate) accepts: Option<Expr>,
    pub(crate) default: Option<ExprLit>,
    pub(crate) absent: Option<Expr>,
    pub(crate) or: Option<Expr>,
    pub(crate) read: Option<Expr>,
    pub(crate) by: Option<Expr>,
    pub(crate) is: Option<Expr>,
    pub(crate) keys: Option<Type>,
    pub(crate) then: Option<Type>,
    pub(crate) name: Option<LitStr>,
    pub(crate) flatten: bool,
    pub(crate) first: bool,
}

impl KeyAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        each(attributes, "key", |name, meta| {
            match name {
                "accepts" => found.accepts = Some(meta.value()?.parse()?),
                "default" => found.default = Some(meta.value()?.parse()?),
                "absent" => found.absent = Some(meta.value()?.parse()?),
                "or" => found.or = Some(meta.value()?.parse()?),
                "read" => found.read = Some(meta.value()?.parse()?),
                "by" => found.by = Some(meta.value()?.parse()?),
                "is" => found.is = Some(meta.value()?.parse()?),
                "keys" => found.keys = Some(meta.value()?.parse()?),
                "then" => found.then = Some(meta.value()?.parse()?),
                "name" => found.name = Some(meta.value()?.parse()?),
                "flatten" => found.flatten = true,
                "first" => found.first = true,
                _ => {
                    return Err(meta.error(
                        "it takes accepts, default, absent, or, read, by, is, keys, then, name, \
                         flatten and first",
                    ));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Passes each part of the attributes called `called` to `take`, with its name.
fn each(
    attributes: &[Attribute],
    called: &str,
    mut take: impl FnMut(&str, &ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    for attribute in attributes {
        if attribute.path().is_ident(called) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string);
                take(&name.unwrap_or_default(), &meta)
            })?;
        }
    }
    Ok(())
}

/// Joins the lines of the documentation.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let Meta::NameValue(meta) = &attribute.meta else {
            return None;
        };
        let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &meta.value
        else {
            return None;
        };
        let is_doc = meta.path.is_ident("doc");
        is_doc.then(|| text.value().trim().to_owned())
    });
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Converts a variant's name to kebab case, like serde.
pub(crate) fn kebab_case(name: &str) -> String {
    let mut word = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_uppercase() && index > 0 {
            word.push('-');
        }
        word.extend(letter.to_lowercase());
    }
    word
}
