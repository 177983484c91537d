//! The extensions of a hello.

use tls_parser::{TlsExtension, TlsExtensionType as Type, parse_tls_extension_unknown};

/// What clients send: OpenSSL's 12, browsers' 16 to 18.
const USUAL_EXTENSIONS: usize = 18;

/// Types and contents of the extensions of a hello; None if they do not fill
/// `bytes`.
pub(super) fn extensions(mut bytes: &[u8]) -> Option<Vec<(Type, &[u8])>> {
    let mut extensions = Vec::with_capacity(USUAL_EXTENSIONS);
    while !bytes.is_empty() {
        let (rest, extension) = parse_tls_extension_unknown(bytes).ok()?;
        if let TlsExtension::Unknown(kind, content) = extension {
            extensions.push((kind, content));
        }
        bytes = rest;
    }
    Some(extensions)
}
