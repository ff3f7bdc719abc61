//! The table that `fit` reads: columns by name, rows as vectors, every fault with its line and column.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use super::fit::Survey;
use crate::error::{cut, short};
use crate::filter::registry::Task;
use crate::{Complex64, Error, Result, files};

/// Where the columns of inputs and target are.
pub(crate) struct Header {
    names: Vec<String>,
    inputs: Vec<(usize, Option<usize>)>,
    target: (usize, Option<usize>),
    /// Complex numbers in an input vector.
    pub(crate) taps: usize,
    /// Whether the target has an imaginary part.
    pub(crate) complex_target: bool,
}

/// A CSV file that can be read more than once, or what came from a pipe, which is kept.
pub(crate) struct Source {
    path: PathBuf,
    kept: Option<Vec<u8>>,
    header: Header,
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        // What flows is there once, and the table is read twice.
        let kept = if files::is_standard_input(path) || !path.is_file() { Some(files::read(path, files::TABLE)?) } else { None };
        let path = if path == Path::new("-") { PathBuf::from("standard input") } else { path.into() };
        let mut reader = reader(&path, kept.as_deref())?;
        let names = reader.headers().map_err(|e| broken(&path, &e))?.iter().map(str::to_owned).collect();
        let header = Header::find(&path, names)?;
        drop(reader);
        Ok(Self { path, kept, header })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Hands every row to `each`, as long as that wants more.
    pub(crate) fn rows(&self, mut each: impl FnMut(&[Complex64], Complex64) -> Result<bool>) -> Result<()> {
        let mut reader = reader(&self.path, self.kept.as_deref())?;
        let mut record = csv::StringRecord::new();
        let mut x = vec![Complex64::new(0.0, 0.0); self.header.taps];
        loop {
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => return Err(broken(&self.path, &error)),
            }
            let number = |i: usize| self.number(&record, i);
            let complex =
                |(re, im): (usize, Option<usize>)| Ok::<_, Error>(Complex64::new(number(re)?, im.map(number).transpose()?.unwrap_or(0.0)));
            for (x, &columns) in x.iter_mut().zip(&self.header.inputs) {
                *x = complex(columns)?;
            }
            if !each(&x, complex(self.header.target)?)? {
                return Ok(());
            }
        }
    }

    fn number(&self, record: &csv::StringRecord, column: usize) -> Result<f64> {
        let text = record.get(column).unwrap_or("").trim();
        text.parse().map_err(|_| {
            let line = record.position().map_or(0, csv::Position::line);
            let problem = if text.is_empty() {
                "is empty; write nan for a missing value".into()
            } else {
                format!("'{}' is not a number", short(text))
            };
            Error::file(&self.path, format!("line {line}, column {}", self.header.names[column]), problem)
        })
    }

    /// One pass over the table: its length, its scale, and whether its targets are of the kind that the task needs.
    pub(crate) fn survey(&self, task: Task) -> Result<Survey> {
        let (mut rows, mut finite, mut power, mut largest) = (0u64, 0u64, 0.0, 0.0f64);
        let target = &self.header.names[self.header.target.0];
        if !matches!(task, Task::Regression | Task::Stream) && self.header.complex_target {
            return Err(Error::file(&self.path, format!("column {target}"), "a count, bit or class is a real number y"));
        }
        self.rows(|x, y| {
            rows += 1;
            let norm: f64 = x.iter().map(|z| z.norm_sqr()).sum();
            if norm.is_finite() {
                finite += 1;
                power += norm;
            }
            if y.re.is_finite() {
                largest = largest.max(y.re);
                let (ok, expected) = match task {
                    Task::Regression | Task::Stream => (true, ""),
                    Task::Counts => (y.re >= 0.0, "a count, at least 0"),
                    Task::Bits => (y.re == 0.0 || y.re == 1.0, "0 or 1"),
                    Task::Classes => (y.re >= 0.0 && y.re.fract() == 0.0 && y.re < 1000.0, "a class from 0 to 999"),
                };
                if !ok {
                    return Err(Error::file(&self.path, format!("row {rows}, column {target}"), format!("{} is not {expected}", y.re)));
                }
            }
            Ok(true)
        })?;
        if rows == 0 {
            return Err(Error::file(&self.path, "line 2", "there are no rows after the header"));
        }
        Ok(Survey { rows, spread: (power / finite.max(1) as f64).sqrt(), largest })
    }
}

impl Header {
    fn find(path: &Path, names: Vec<String>) -> Result<Self> {
        let place = |name: &str| names.iter().position(|n| n.trim() == name);
        let used = |name: &str| name.starts_with(['x', 'y']);
        if let Some((_, twice)) = names.iter().enumerate().find(|(n, name)| used(name.trim()) && place(name.trim()) < Some(*n)) {
            return Err(Error::file(path, "line 1", format!("column {} is there twice", short(twice.trim()))));
        }
        let column = |name: &str| -> Result<Option<(usize, Option<usize>)>> {
            let (re, im) = (format!("{name}_re"), format!("{name}_im"));
            match (place(name), place(&re), place(&im)) {
                (Some(i), None, None) => Ok(Some((i, None))),
                (None, Some(i), Some(j)) => Ok(Some((i, Some(j)))),
                (None, None, None) => Ok(None),
                (Some(_), _, _) => {
                    Err(Error::file(path, "line 1", format!("there is a column {name} and a column {re} or {im}; keep one form")))
                }
                (None, i, _) => {
                    let missing = if i.is_some() { im } else { re };
                    Err(Error::file(path, "line 1", format!("column {missing} is missing")))
                }
            }
        };
        let mut inputs = Vec::new();
        while let Some(columns) = column(&format!("x{}", inputs.len()))? {
            inputs.push(columns);
        }
        let found = || format!("the columns are {}", cut(&names.join(","), 300));
        if inputs.is_empty() {
            return Err(Error::file(path, "line 1", format!("no input column x0 or x0_re,x0_im; {}", found())));
        }
        let Some(target) = column("y")? else {
            return Err(Error::file(path, "line 1", format!("no target column y or y_re,y_im; {}", found())));
        };
        Ok(Self { taps: inputs.len(), complex_target: target.1.is_some(), inputs, target, names })
    }
}

fn reader<'a>(path: &Path, kept: Option<&'a [u8]>) -> Result<csv::Reader<Lines<Box<dyn Read + 'a>>>> {
    let bytes: Box<dyn Read + 'a> = match kept {
        Some(bytes) => Box::new(Cursor::new(bytes)),
        None => Box::new(std::fs::File::open(path).map_err(|e| Error::io(path, e))?),
    };
    Ok(csv::ReaderBuilder::new().buffer_capacity(1 << 16).from_reader(Lines { bytes, line: 0 }))
}

/// Bytes of a line, at most: one without an end would fill the memory.
const LONGEST: usize = 16_000_000;

/// Reads lines that have an end.
struct Lines<R> {
    bytes: R,
    line: usize,
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.bytes.read(buffer)?;
        self.line = buffer[..n].iter().rposition(|&b| b == b'\n').map_or(self.line + n, |at| n - at);
        if self.line > LONGEST {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "a line of more than 16 MB is no line of a table"));
        }
        Ok(n)
    }
}

/// A fault that the CSV reader found.
fn broken(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map_or_else(|| "table".into(), |p| format!("line {}", p.line()));
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => format!("{len} fields, the header has {expected_len}"),
        csv::ErrorKind::Utf8 { err, .. } => format!("column {}: not UTF-8 text", err.field() + 1),
        csv::ErrorKind::Io(e) => e.to_string(),
        _ => error.to_string(),
    };
    Error::file(path, line, problem)
}
