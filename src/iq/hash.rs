//! The hash that SigMF keeps of its data.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha512};

use crate::{Error, Result};

/// The SHA-512 of all that a reader delivers, in hexadecimal digits.
pub(crate) fn sha512(path: &Path, mut reader: impl Read) -> Result<String> {
    let mut hash = Sha512::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match reader.read(&mut block) {
            Ok(0) => return Ok(hex(hash)),
            Ok(n) => hash.update(&block[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(path, e)),
        }
    }
}

/// A finished hash in hexadecimal digits.
pub(crate) fn hex(hash: Sha512) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
