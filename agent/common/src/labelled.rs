//! Enums whose variants have a label each.

/// Defines an enum, and from the same lines the list of all variants and the label of each, so that
/// none can be forgotten.
#[macro_export]
macro_rules! labelled {
    (
        $(#[$about:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$of:meta])* $variant:ident = $label:literal,)+
        }
    ) => {
        $(#[$about])*
        $visibility enum $name { $($(#[$of])* $variant,)+ }

        #[allow(dead_code, reason = "not all enums are listed")]
        impl $name {
            /// All of them, in the order in which they are shown.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$variant),+];

            /// What it is called in metrics and reports.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }
    };
}
