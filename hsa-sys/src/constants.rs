//! How the header's constants are declared: each with the header's name, its type, and its name as
//! text, so that a log line or a test can say it.

/// Declares integer types of the header (as newtypes: a C enumeration may hold any value, so a Rust
/// `enum` would be unsound where the runtime calls us) together with their constants.
macro_rules! constants {
    ($(
        $(#[$doc:meta])* $kind:ident $name:ident : $repr:ty {
            $($(#[$cdoc:meta])* $constant:ident = $value:expr;)*
        }
    )*) => {$(
        constants!(@$kind $(#[$doc])* $name $repr { $($(#[$cdoc])* $constant = $value;)* });
    )*};
    (@value $(#[$doc:meta])* $name:ident $repr:ty {
        $($(#[$cdoc:meta])* $constant:ident = $value:expr;)*
    }) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $repr);

        $($(#[$cdoc])* pub const $constant: $name = $name($value);)*

        impl $name {
            /// Every constant of this type that the crate declares, with the header's name.
            pub const ALL: &[(&str, Self)] = &[$((stringify!($constant), $constant),)*];

            /// The header's name of this value, or `None` for one that the crate does not know.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                Self::ALL.iter().find(|(_, v)| *v == self).map(|(name, _)| *name)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({:#x})"), self.0),
                }
            }
        }
    };
}

pub(crate) use constants;
