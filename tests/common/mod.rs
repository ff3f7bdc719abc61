//! What several tests need: development data where it is present, tables, seeded signals.
#![allow(dead_code)] // each test file uses a part

use std::path::{Path, PathBuf};

use kaflow::Complex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A file of the development data beside the checkout, or a loud word that the check is skipped.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {name} is not beside this checkout (looked for {})", path.display());
    None
}

/// A table of numbers with named columns; a first line `# {...}` says in JSON what they are.
pub struct Table {
    pub about: serde_json::Value,
    pub names: Vec<String>,
    pub rows: Vec<Vec<f64>>,
}

impl Table {
    pub fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(path).unwrap())
    }

    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines().peekable();
        let about =
            lines.next_if(|line| line.starts_with('#')).map_or(serde_json::Value::Null, |line| serde_json::from_str(&line[1..]).unwrap());
        let names = lines.next().unwrap().split(',').map(str::to_owned).collect();
        let rows = lines.map(|line| line.split(',').map(|v| v.parse().unwrap()).collect()).collect();
        Self { about, names, rows }
    }

    /// The reference vector `name`: made by float64 numpy (`ref_`, `hammerstein_`) or by KAFBOX in Octave (`kafbox_`).
    pub fn vector(name: &str) -> Self {
        Self::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors").join(name).with_extension("csv"))
    }

    pub fn column(&self, name: &str) -> Option<Vec<f64>> {
        let i = self.names.iter().position(|n| n == name)?;
        Some(self.rows.iter().map(|row| row[i]).collect())
    }

    /// Column `name`, or `name_re` and `name_im`.
    pub fn complex(&self, name: &str) -> Vec<Complex<f64>> {
        let zip = |re: Vec<f64>, im: Vec<f64>| re.into_iter().zip(im).map(|(re, im)| Complex::new(re, im)).collect();
        match self.column(name) {
            Some(re) => re.into_iter().map(Complex::from).collect(),
            None => zip(self.column(&format!("{name}_re")).unwrap(), self.column(&format!("{name}_im")).unwrap()),
        }
    }

    /// The input vectors: `x0, x1, ...` or `re0, ..., im0, ...`; where `about` tells the taps, the last ones of a stream, newest first.
    pub fn inputs(&self) -> Vec<Vec<Complex<f64>>> {
        let column = |i: usize| match self.column(&format!("x{i}")) {
            Some(x) => Some(x.into_iter().map(Complex::from).collect::<Vec<_>>()),
            None => {
                let (re, im) = (self.column(&format!("re{i}"))?, self.column(&format!("im{i}"))?);
                Some(re.into_iter().zip(im).map(|(re, im)| Complex::new(re, im)).collect())
            }
        };
        let columns: Vec<_> = (0..).map_while(column).collect();
        let delayed = |n: usize, l: usize| if n >= l { columns[0][n - l] } else { Complex::default() };
        let row = |n: usize| match self.about["taps"].as_u64() {
            Some(taps) => (0..taps as usize).map(|l| delayed(n, l)).collect(),
            None => columns.iter().map(|c| c[n]).collect(),
        };
        (0..self.rows.len()).map(row).collect()
    }
}

/// `n` complex numbers in the unit square around 0.
pub fn noise(seed: u64, n: usize) -> Vec<Complex<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| Complex::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
}

/// A saturating complex channel with memory and noise: `tx`, `rx`.
pub fn channel(seed: u64, n: usize) -> (Vec<Complex<f64>>, Vec<Complex<f64>>) {
    let (tx, v) = (noise(seed, n), noise(seed + 1000, n));
    let taps = [Complex::new(0.8, -0.3), Complex::new(-0.2, 0.4), Complex::new(0.1, 0.1)];
    let g = |x: Complex<f64>| x / (1.0 + x.norm_sqr()).sqrt() * Complex::from_polar(1.0, 0.3 * x.norm_sqr());
    let at = |i: usize, l: usize| if i >= l { g(tx[i - l]) } else { Complex::new(0.0, 0.0) };
    let rx = (0..n).map(|i| (0..3).map(|l| taps[l] * at(i, l)).sum::<Complex<f64>>() + v[i] * 0.02).collect();
    (tx, rx)
}

/// The numbers behind the lines and dots called `name` in a panel, counted from 0, read back from the picture itself.
pub fn read_back(svg: &str, panel: usize, name: &str) -> Vec<[f64; 2]> {
    let attribute = |line: &str, key: &str| -> String {
        let start = line.find(&format!(" {key}=\"")).unwrap_or_else(|| panic!("{key} in {line}")) + key.len() + 3;
        line[start..].split('"').next().unwrap().to_owned()
    };
    let numbers = |text: &str| -> Vec<f64> { text.split(' ').filter_map(|n| n.parse().ok()).collect() };
    let drawn = svg.split("<g class=\"panel\"").nth(panel + 1).unwrap_or_else(|| panic!("no panel {panel}"));
    let frame = numbers(&attribute(drawn, "data-frame"));
    let value = |key: &str, at: f64| {
        let text = attribute(drawn, key);
        let range = numbers(&text);
        if text.ends_with("log") { range[0] * (range[1] / range[0]).powf(at) } else { range[0] + at * (range[1] - range[0]) }
    };
    let mut points = Vec::new();
    for line in drawn.lines().filter(|l| l.contains(&format!("data-name=\"{name}\""))) {
        for point in attribute(line, "d").replace("h0", "").split(['M', 'L']).filter(|p| !p.is_empty()) {
            let px = numbers(point);
            points.push([value("data-x", (px[0] - frame[0]) / frame[2]), value("data-y", 1.0 - (px[1] - frame[1]) / frame[3])]);
        }
    }
    points
}
