//! Enumerations whose variants have fixed names.

/// Makes an enumeration of names: each stands once, for JSON and for whoever else spells it.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum $type {
            $($(#[$variant_doc])* #[serde(rename = $name)] $variant,)*
        }

        impl $type {
            /// Every one, in the order of the discriminants.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant,)*];

            /// The fixed name, as it stands in JSON and in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}
