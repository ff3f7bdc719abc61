//! WAV import, as SDR programs write it: I in the left channel, Q in the right; RF64 for files over 4 GiB.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::Datatype;
use super::datatype::Number;
use super::sigmf::Meta;
use crate::{Error, Result};

/// Finds the format and where the samples lie: offset and length in bytes.
pub(crate) fn locate(path: &Path, file: &File) -> Result<(Meta, u64, u64)> {
    let size = file.metadata().map_err(|e| Error::io(path, e))?.len();
    let mut reader = BufReader::new(file);
    let at = |offset: u64, problem: String| Error::file(path, format!("offset {offset}"), problem);
    let truncated = |offset: u64| at(offset, "the file ends inside a header".into());

    let mut riff = [0; 12];
    reader.read_exact(&mut riff).map_err(|_| truncated(0))?;
    if !matches!(&riff[..4], b"RIFF" | b"RF64" | b"BW64") || &riff[8..] != b"WAVE" {
        return Err(at(0, "not a WAV file: it does not start with RIFF or RF64 and WAVE".into()));
    }
    let (mut meta, mut long_size, mut frequency) = (None, None, None);
    let mut offset = 12_u64;
    loop {
        let mut header = [0; 8];
        reader
            .seek(SeekFrom::Start(offset))
            .and_then(|_| reader.read_exact(&mut header))
            .map_err(|_| at(offset, if meta.is_some() { "no 'data' chunk".into() } else { "no 'fmt ' and no 'data' chunk".into() }))?;
        let length = u64::from(u32_at(&header, 4));
        let body = offset + 8;
        match &header[..4] {
            b"fmt " => meta = Some(format(path, body, &head::<40>(&mut reader, length).ok_or_else(|| truncated(body))?)?),
            // RF64: the 64-bit sizes of the file and of the data.
            b"ds64" => long_size = Some(u64_at(&head::<24>(&mut reader, length).ok_or_else(|| truncated(body))?, 8)),
            // SDR programs keep two dates of 16 bytes here, then the centre frequency in Hz.
            b"auxi" => frequency = head::<36>(&mut reader, length).map(|b| u32_at(&b, 32)).filter(|&hz| hz > 0),
            b"data" => {
                let mut meta: Meta = meta.ok_or_else(|| at(offset, "the 'data' chunk comes before 'fmt '".into()))?;
                meta.captures[0].frequency = frequency.map(f64::from);
                let left = size.saturating_sub(body);
                let length = match (length, long_size) {
                    (0xffff_ffff, Some(long)) => long,
                    // A recorder that was killed or writes to a pipe leaves these: all that follows is data.
                    (0 | 0xffff_ffff, None) => left - left % (meta.global.datatype.bytes() as u64),
                    _ => length,
                };
                if length > left {
                    return Err(at(body, format!("the 'data' chunk declares {length} bytes, and only {left} follow")));
                }
                return Ok((meta, body, length));
            }
            _ => {}
        }
        // Chunks are padded to an even length.
        offset = body + length + length % 2;
    }
}

/// The first `N` bytes of a chunk, zeros where it is shorter.
fn head<const N: usize>(reader: &mut impl Read, length: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let n = N.min(length as usize);
    reader.read_exact(&mut bytes[..n]).ok().map(|()| bytes)
}

fn u16_at(bytes: &[u8], i: usize) -> u16 {
    u16::from_le_bytes([bytes[i], bytes[i + 1]])
}

fn u32_at(bytes: &[u8], i: usize) -> u32 {
    u32::from(u16_at(bytes, i)) | u32::from(u16_at(bytes, i + 2)) << 16
}

fn u64_at(bytes: &[u8], i: usize) -> u64 {
    u64::from(u32_at(bytes, i)) | u64::from(u32_at(bytes, i + 4)) << 32
}

fn format(path: &Path, offset: u64, fmt: &[u8; 40]) -> Result<Meta> {
    let bad = |field: &str, problem: String| Error::file(path, format!("offset {offset}, {field}"), problem);
    // WAVE_FORMAT_EXTENSIBLE keeps the real tag in the first bytes of a GUID.
    let tag = match u16_at(fmt, 0) {
        0xfffe => u16_at(fmt, 24),
        tag => tag,
    };
    let (channels, rate, bits) = (u16_at(fmt, 2), u32_at(fmt, 4), u16_at(fmt, 14));
    let number = match (tag, bits) {
        (1, 8) => Number::U8,
        (1, 16) => Number::I16,
        (1, 24) => Number::I24,
        (1, 32) => Number::I32,
        (3, 32) => Number::F32,
        (3, 64) => Number::F64,
        _ => return Err(bad("format", format!("format {tag} with {bits} bits: only PCM of 8 to 32 bits and floats are read"))),
    };
    if rate == 0 {
        return Err(bad("sample rate", "is 0".into()));
    }
    let complex = match channels {
        1 => false,
        2 => true,
        _ => return Err(bad("channels", format!("{channels}: only I and Q (2) or a real signal (1) are read"))),
    };
    Ok(Meta::new(Datatype { complex, number, big_endian: false }, Some(rate.into())))
}
