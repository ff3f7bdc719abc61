//! Saved state: a versioned, checksummed envelope around a filter's numbers.
//!
//! Layout, little endian: magic `KAFLOW\0\n`, version `u16`, length of the kind `u16`, the kind (UTF-8), length of the body `u64`, the
//! body (in the postcard format), CRC-32 of all that precedes. Floats are stored by their bits, so a restored filter
//! continues as if it had never stopped.

use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"KAFLOW\0\n";
const VERSION: u16 = 2;

/// Seals `value` as state of the given kind.
pub fn encode<S: Serialize>(kind: &str, value: &S) -> Result<Vec<u8>> {
    let body = postcard::to_stdvec(value).map_err(|e| Error::State(format!("cannot encode: {e}")))?;
    let mut out = Vec::with_capacity(body.len() + kind.len() + 24);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(kind.len() as u16).to_le_bytes());
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(&body);
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    Ok(out)
}

/// Opens what [`encode`] sealed, and says what is wrong with it otherwise.
pub fn decode<S: DeserializeOwned>(kind: &str, bytes: &[u8]) -> Result<S> {
    let bad = |what: String| Err(Error::State(what));
    let Some(rest) = bytes.strip_prefix(MAGIC.as_slice()) else {
        return bad("not a kaflow state file (it does not start with KAFLOW)".into());
    };
    let Some((head, sum)) = bytes.split_last_chunk::<4>() else {
        return bad(format!("truncated after {} bytes", bytes.len()));
    };
    let Some((version, rest)) = rest.split_first_chunk::<2>() else {
        return bad(format!("truncated after {} bytes", bytes.len()));
    };
    let version = u16::from_le_bytes(*version);
    if version != VERSION {
        return bad(format!("version {version}, this kaflow reads version {VERSION}"));
    }
    if crc32fast::hash(head) != u32::from_le_bytes(*sum) {
        return bad(format!("damaged or truncated: the checksum of its {} bytes does not match", bytes.len()));
    }
    let field = |rest: &mut &[u8], n: usize| -> Result<Vec<u8>> {
        let Some((a, b)) = rest.split_at_checked(n) else {
            return Err(Error::State("damaged: a length points past its end".into()));
        };
        *rest = b;
        Ok(a.to_vec())
    };
    let mut rest = rest;
    let n = field(&mut rest, 2)?;
    let found = field(&mut rest, usize::from(u16::from_le_bytes([n[0], n[1]])))?;
    if found != kind.as_bytes() {
        return bad(format!(
            "it holds '{}', not '{kind}': restore it into the filter and precision that it was saved from",
            String::from_utf8_lossy(&found)
        ));
    }
    let n = field(&mut rest, 8)?;
    let n = u64::from_le_bytes(n.try_into().expect("eight bytes were taken"));
    let body = field(&mut rest, usize::try_from(n).unwrap_or(usize::MAX))?;
    postcard::from_bytes(&body).map_err(|e| Error::State(format!("its body does not decode: {e}")))
}

/// The kind of a filter's state: its name and precision.
pub(crate) fn kind<T>(name: &str) -> String {
    format!("{name}/f{}", 8 * size_of::<T>())
}

/// Refuses state whose sizes differ from those of the filter it is restored into.
pub(crate) fn same_shape(what: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::State(format!("it has {found} {what}, this filter has {expected}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let sealed = encode("test", &vec![1.5f64, f64::NAN, -0.0]).unwrap();
        let back: Vec<f64> = decode("test", &sealed).unwrap();
        assert_eq!(back[1].to_bits(), f64::NAN.to_bits());
        assert_eq!(back[2].to_bits(), (-0.0f64).to_bits());
        for i in 0..sealed.len() {
            for bit in 0..8 {
                let mut damaged = sealed.clone();
                damaged[i] ^= 1 << bit;
                assert!(decode::<Vec<f64>>("test", &damaged).is_err(), "byte {i} bit {bit}");
            }
            assert!(decode::<Vec<f64>>("test", &sealed[..i]).is_err(), "truncated at {i}");
        }
    }

    #[test]
    fn a_foreign_kind_is_named() {
        let sealed = encode("nlms/f32", &1u8).unwrap();
        let error = decode::<u8>("rls/f64", &sealed).unwrap_err().to_string();
        assert!(error.contains("nlms/f32") && error.contains("rls/f64"), "{error}");
        assert!(decode::<u8>("x", b"hello").unwrap_err().to_string().contains("not a kaflow"));
    }
}
