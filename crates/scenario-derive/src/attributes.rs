//! The attributes of types, variants and fields.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Error, Expr, ExprArray, ExprLit, Field, Lit, LitInt, LitStr, Meta, Path, Result,
    Token, Type,
};

/// `#[keys(…)]` of a type or a variant.
#[derive(Default)]
pub(crate) struct TableAttributes {
    pub(crate) title: Option<Expr>,
    pub(crate) doc: Option<Expr>,
    pub(crate) context: Option<Type>,
    pub(crate) first: Option<Vec<Expr>>,
}

impl TableAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes {
            if !attribute.path().is_ident("keys") {
                continue;
            }
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string);
                match name.as_deref() {
                    Some("title") => found.title = Some(meta.value()?.parse()?),
                    Some("doc") => found.doc = Some(meta.value()?.parse()?),
                    Some("context") => found.context = Some(meta.value()?.parse()?),
                    Some("first") => found.first = Some(list(meta.value()?.parse()?)),
                    _ => return Err(meta.error("it takes title, doc, context and first")),
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// The type of the context.
    pub(crate) fn context(&self) -> TokenStream {
        match &self.context {
            Some(context) => context.to_token_stream(),
            None => quote!(()),
        }
    }
}

/// `#[key(…)]` of a field.
#[derive(Default)]
struct KeyAttributes {
    accepts: Option<Expr>,
    default: Option<ExprLit>,
    absent: Option<Expr>,
    or: Option<Expr>,
    by: Option<Path>,
    keys: Option<Vec<Expr>>,
    name: Option<LitStr>,
    then: Option<Vec<Expr>>,
    flatten: Option<LitInt>,
    first: bool,
}

impl KeyAttributes {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes {
            if !attribute.path().is_ident("key") {
                continue;
            }
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string);
                match name.as_deref() {
                    Some("accepts") => found.accepts = Some(meta.value()?.parse()?),
                    Some("default") => found.default = Some(meta.value()?.parse()?),
                    Some("absent") => found.absent = Some(meta.value()?.parse()?),
                    Some("or") => found.or = Some(meta.value()?.parse()?),
                    Some("by") => found.by = Some(meta.value()?.parse()?),
                    Some("keys") => found.keys = Some(list(meta.value()?.parse()?)),
                    Some("name") => found.name = Some(meta.value()?.parse()?),
                    Some("then") => found.then = Some(list(meta.value()?.parse()?)),
                    Some("flatten") => found.flatten = Some(meta.value()?.parse()?),
                    Some("first") => found.first = true,
                    _ => {
                        return Err(meta.error(
                            "it takes accepts, default, absent, or, by, keys, name, then, flatten \
                             and first",
                        ));
                    }
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

fn list(array: ExprArray) -> Vec<Expr> {
    array.elems.into_iter().collect()
}

/// A field as a key: what describes it, and what reads it.
pub(crate) struct KeyField {
    /// Constants of the type `Key`.
    pub(crate) keys: Vec<TokenStream>,
    /// An expression of the type `Result<T, Reported>`, of `fields` and `context`.
    pub(crate) read: TokenStream,
    /// Whether the keys stand before those of other fields.
    pub(crate) is_first: bool,
}

impl KeyField {
    pub(crate) fn of(field: &Field) -> Result<Self> {
        let attributes = KeyAttributes::of(&field.attrs)?;
        let Some(name) = &field.ident else {
            return Err(Error::new_spanned(field, "a key needs a name"));
        };
        if let Some(keys) = &attributes.keys {
            let Some(by) = &attributes.by else {
                return Err(Error::new_spanned(
                    name,
                    "`keys` needs `by`, which reads them",
                ));
            };
            return Ok(Self {
                keys: keys.iter().map(|key| quote!(#key)).collect(),
                read: quote!(#by(fields, context)),
                is_first: attributes.first,
            });
        }
        if let Some(count) = &attributes.flatten {
            return Self::flattened(&field.ty, count, attributes.first);
        }
        let name = attributes
            .name
            .as_ref()
            .map_or_else(|| name.to_string(), LitStr::value);
        let doc = documentation(&field.attrs);
        if doc.is_empty() {
            return Err(Error::new(
                field.span(),
                "a key needs documentation: it is the reference's text",
            ));
        }
        let inner = option_of(&field.ty).unwrap_or(&field.ty);
        let accepts = match &attributes.accepts {
            Some(accepts) => quote!(#accepts),
            None => quote!(<#inner as crate::schema::Accepted>::ACCEPTS),
        };
        let key = match (&attributes.default, &attributes.absent) {
            (Some(_), Some(absent)) => {
                return Err(Error::new_spanned(
                    absent,
                    "a key with a default is never absent",
                ));
            }
            (Some(default), None) => {
                let default = literal(default)?;
                quote!(crate::schema::Key::default(#name, #accepts, #default, #doc))
            }
            (None, Some(absent)) => {
                quote!(crate::schema::Key::optional(#name, #accepts, #absent, #doc))
            }
            (None, None) => quote!(crate::schema::Key::required(#name, #accepts, #doc)),
        };
        let is_optional = attributes.default.is_none() && option_of(&field.ty).is_some();
        if attributes.by.is_none()
            && attributes.absent.is_some() != (is_optional || attributes.or.is_some())
        {
            return Err(Error::new_spanned(
                &field.ty,
                "what may be absent is an `Option`, or has `or`; and `absent` says what that means",
            ));
        }
        let read = match (&attributes.by, &attributes.or) {
            (Some(by), _) => quote!(#by(fields, context)),
            (None, Some(or)) => {
                quote!(fields.optional(#name).map(|value| value.unwrap_or(#or)))
            }
            (None, None) if is_optional => quote!(fields.optional(#name)),
            (None, None) => quote!(fields.get(#name)),
        };
        let mut keys = vec![key];
        keys.extend(attributes.then.iter().flatten().map(|key| quote!(#key)));
        Ok(Self {
            keys,
            read,
            is_first: attributes.first,
        })
    }

    /// A field whose type has so many keys itself, which stand in the same table.
    fn flattened(of: &Type, count: &LitInt, is_first: bool) -> Result<Self> {
        let indices = 0..count.base10_parse::<usize>()?;
        Ok(Self {
            keys: indices.map(|index| quote!(<#of>::KEYS[#index])).collect(),
            read: quote!(<#of>::read_keys(fields, context)),
            is_first,
        })
    }
}

/// A default as the schema has it.
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

/// The lines of the documentation as one.
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
        meta.path
            .is_ident("doc")
            .then(|| text.value().trim().to_owned())
    });
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// The type in an `Option`.
fn option_of(of: &Type) -> Option<&Type> {
    let Type::Path(path) = of else { return None };
    let last = path.path.segments.last()?;
    if last.ident != "Option" {
        return None;
    }
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    let arguments: &Punctuated<_, Token![,]> = &arguments.args;
    match arguments.first()? {
        syn::GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

/// A variant's name in kebab case, as serde has it.
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
