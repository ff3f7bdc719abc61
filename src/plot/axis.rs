//! Axes: ranges, ticks and the numbers written beside them.

/// One axis of a panel: what it shows, in which unit, and from where to where.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Axis {
    /// What is shown: "frequency".
    pub label: String,
    /// In which unit; empty for pure numbers. Units of the SI get a prefix (kHz, µs) where the numbers ask for one.
    pub unit: String,
    /// Logarithmic; values that are not positive are then left out.
    pub log: bool,
    /// From where to where; from the data when `None`.
    pub range: Option<[f64; 2]>,
    /// No ticks above this, where the room is for something else.
    pub ticks_up_to: Option<f64>,
    /// Names at 0, 1, 2, ... instead of numbers, from the top downwards on a vertical axis.
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis that takes its range from the data.
    pub(crate) fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), ..Self::default() }
    }

    /// The same with logarithmic spacing.
    pub(crate) fn log(self) -> Self {
        Self { log: true, ..self }
    }

    /// The same from `lo` to `hi`.
    pub(crate) fn range(self, lo: f64, hi: f64) -> Self {
        Self { range: Some([lo, hi]), ..self }
    }

    /// The same with names in place of numbers.
    pub(crate) fn names<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Whether `value` has a place on this kind of axis at all.
    pub(crate) fn takes(&self, value: f64) -> bool {
        value.abs() < HUGEST / 10.0 && (!self.log || value > 10.0 * TINIEST)
    }
}

/// Beyond these a number is as good as infinite, or zero: ranges and ticks are computed from it without overflow.
const HUGEST: f64 = 1e300;
const TINIEST: f64 = 1e-290;

/// An axis with its range settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) log: bool,
}

/// A place on an axis and what is written there: nothing at a minor tick.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) text: String,
}

impl Scale {
    /// The range that holds all of `values`, widened by `pad` of its length on both sides. No values: 0 to 1, or 1 to 10. One value: around it.
    pub(crate) fn around(axis: &Axis, values: impl Iterator<Item = f64>, pad: f64) -> Self {
        let log = axis.log;
        if !axis.names.is_empty() {
            return Self { lo: -0.5, hi: axis.names.len() as f64 - 0.5, log: false };
        }
        if let Some([a, b]) = axis.range
            && axis.takes(a)
            && axis.takes(b)
            && a != b
        {
            return Self { lo: a.min(b), hi: a.max(b), log };
        }
        let (lo, hi) = values.filter(|&v| axis.takes(v)).fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if lo > hi {
            return if log { Self { lo: 1.0, hi: 10.0, log } } else { Self { lo: 0.0, hi: 1.0, log } };
        }
        if log {
            let (a, b) = (lo.ln(), hi.ln());
            let grow = if b - a > 1e-9 { pad * (b - a) } else { std::f64::consts::LN_2 };
            return Self { lo: (a - grow).exp().max(TINIEST), hi: (b + grow).exp().min(HUGEST), log };
        }
        let largest = lo.abs().max(hi.abs());
        let grow = match hi - lo {
            _ if largest < TINIEST => 1.0,
            span if span <= 1e-9 * largest => 0.1 * largest,
            span => pad * span,
        };
        Self { lo: lo - grow, hi: hi + grow, log }
    }

    /// 0 at the low end, 1 at the high one, beyond them outside.
    pub(crate) fn at(&self, value: f64) -> f64 {
        if self.log { (value.ln() - self.lo.ln()) / (self.hi.ln() - self.lo.ln()) } else { (value - self.lo) / (self.hi - self.lo) }
    }

    /// What lies there: the inverse of [`at`](Self::at).
    pub(crate) fn value(&self, at: f64) -> f64 {
        if self.log { self.lo * (self.hi / self.lo).powf(at) } else { self.lo + (self.hi - self.lo) * at }
    }

    /// Ticks, at most about `most` with a label, and the axis' title, which carries the unit and its prefix.
    pub(crate) fn ticks(&self, axis: &Axis, most: usize) -> (Vec<Tick>, String) {
        let limit = axis.ticks_up_to.filter(|l| l.is_finite() && *l > self.lo && *l < self.hi);
        // As many as if the axis ended there.
        let (mut ticks, title) = Self { hi: limit.unwrap_or(self.hi), ..*self }
            .all_ticks(axis, limit.map_or(most, |l| (most as f64 * self.at(l)).ceil() as usize));
        ticks.retain(|t| limit.is_none_or(|l| t.value <= l));
        (ticks, title)
    }

    fn all_ticks(&self, axis: &Axis, most: usize) -> (Vec<Tick>, String) {
        let titled = |unit: &str| match (axis.label.is_empty(), unit.is_empty()) {
            (_, true) => axis.label.clone(),
            (true, false) => unit.to_owned(),
            (false, false) => format!("{} ({unit})", axis.label),
        };
        if !axis.names.is_empty() {
            let every = axis.names.len().div_ceil(most.max(1));
            let named = axis.names.iter().enumerate().step_by(every);
            return (named.map(|(i, name)| Tick { value: i as f64, text: name.clone() }).collect(), titled(&axis.unit));
        }
        if self.log
            && let Some(ticks) = self.decades(most)
        {
            return (ticks, titled(&axis.unit));
        }
        let most = most.max(2);
        let least = self.hi / most as f64 - self.lo / most as f64;
        let step = turns(&axis.unit, least).unwrap_or_else(|| step(least));
        let (first, last) = ((self.lo / step - 1e-6).ceil(), (self.hi / step + 1e-6).floor());
        // Digits that all ticks share go into the title: 1.000002, 1.000004 become 2 and 4.
        let round = 10f64.powf((self.hi - self.lo).log10().ceil());
        let base =
            if step < 1e-5 * self.lo.abs().min(self.hi.abs()) { ((self.lo / 2.0 + self.hi / 2.0) / round).round() * round } else { 0.0 };
        let (exponent, suffix, unit) = prefix(&axis.unit, (self.lo - base).abs().max((self.hi - base).abs()));
        let unit_size = 10f64.powi(exponent);
        let decimals_of = |step: f64| (-(step.log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize;
        let decimals = decimals_of(step / unit_size);
        let count = (last - first).clamp(0.0, 4.0 * most as f64) as usize;
        let ticks = (0..=count).map(|i| (first + i as f64) * step);
        let write = |value: f64| {
            let text = number((value - base) / unit_size, decimals);
            match suffix {
                "" => text,
                _ if text.bytes().all(|b| b == b'0' || b == b'.') => "0".to_owned(),
                _ => text + suffix,
            }
        };
        let title = if base == 0.0 {
            titled(&unit)
        } else {
            let sign = if base < 0.0 { '+' } else { '−' };
            // Where the ticks have a prefix, the offset needs a unit of its own.
            let own = if unit == axis.unit { String::new() } else { format!(" {}", axis.unit) };
            let offset = format!("{} {sign} {}{own}", axis.label, trim(number(base.abs(), decimals_of(round))));
            if unit.is_empty() { offset } else { format!("{offset} ({unit})") }
        };
        (ticks.map(|value| Tick { value, text: write(value) }).collect(), title)
    }

    /// Decades, with 2 and 5 between them where there is room, and unlabelled ticks at the others; `None` where the range is too short for that.
    fn decades(&self, most: usize) -> Option<Vec<Tick>> {
        let (first, last) = ((self.lo.log10() - 1e-9).floor() as i32, (self.hi.log10() + 1e-9).ceil() as i32);
        let inside = |value: f64| value >= self.lo * (1.0 - 1e-9) && value <= self.hi * (1.0 + 1e-9);
        let whole = (first..=last).filter(|&e| inside(10f64.powi(e))).count();
        let labelled: &[u32] = if whole * 3 <= most + 1 && whole <= 3 { &[1, 2, 5] } else { &[1] };
        let every = (whole.div_ceil(most.max(1))).max(1) as i32;
        let powers = first < -4 || last > 9;
        let mut ticks = Vec::new();
        for exponent in first..=last {
            for digit in 1..10_u32 {
                let value = f64::from(digit) * 10f64.powi(exponent);
                let has_label = labelled.contains(&digit) && exponent.rem_euclid(every) == 0;
                if inside(value) && (has_label || every == 1) {
                    ticks.push(Tick { value, text: if has_label { power(digit, exponent, powers) } else { String::new() } });
                }
            }
        }
        (ticks.iter().filter(|t| !t.text.is_empty()).count() >= 2).then_some(ticks)
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].map(|m| m * power).into_iter().find(|s| *s >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// A part of the circle that is not below `least`, for degrees that go some way around it.
fn turns(unit: &str, least: f64) -> Option<f64> {
    let parts = [15.0, 30.0, 45.0, 60.0, 90.0, 180.0, 360.0];
    parts.into_iter().find(|part| *part >= least * (1.0 - 1e-9)).filter(|_| unit == "°" && least > 10.0)
}

/// `value` with a true minus sign, and no sign on zero.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|b| b == b'0' || b == b'.') => digits.to_owned(),
        Some(digits) => format!("−{digits}"),
        None => text,
    }
}

/// A digit times a power of ten, written out unless `powers`.
fn power(digit: u32, exponent: i32, powers: bool) -> String {
    match exponent {
        _ if powers && digit == 1 => format!("10{}", superscript(exponent)),
        _ if powers => format!("{digit}·10{}", superscript(exponent)),
        -3..=2 => number(f64::from(digit) * 10f64.powi(exponent), (-exponent).max(0) as usize),
        3..=5 => format!("{}k", digit * 10_u32.pow(exponent as u32 - 3)),
        6..=8 => format!("{}M", digit * 10_u32.pow(exponent as u32 - 6)),
        _ => power(digit, exponent, true),
    }
}

/// `value` to three significant digits.
pub(crate) fn short(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return value.to_string();
    }
    let exponent = value.abs().log10().floor() as i32;
    match exponent {
        -3..=4 => trim(number(value, (2 - exponent).max(0) as usize)),
        _ => format!("{}·10{}", trim(number(value / 10f64.powi(exponent), 2)), superscript(exponent)),
    }
}

/// Without zeros after the last digit of a fraction.
fn trim(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    exponent.to_string().chars().map(|c| c.to_digit(10).map_or('⁻', |d| DIGITS[d as usize])).collect()
}

/// For numbers up to `largest`: the power of ten that they are divided by, what follows each of them, and the unit in the title.
fn prefix(unit: &str, largest: f64) -> (i32, &'static str, String) {
    let exponent = if largest > 0.0 { (largest.log10() / 3.0 + 1e-9).floor() as i32 * 3 } else { 0 };
    if ["s", "Hz", "V", "W", "A", "m", "Sa/s", "bit/s"].contains(&unit) {
        let exponent = exponent.clamp(-12, 12);
        return (exponent, "", ["p", "n", "µ", "m", "", "k", "M", "G", "T"][(exponent / 3 + 4) as usize].to_owned() + unit);
    }
    let times = || format!("×10{}{}{unit}", superscript(exponent), if unit.is_empty() { "" } else { " " });
    match largest {
        l if l < 5e-3 && l > 0.0 => (exponent, "", times()),
        l if l < 1e4 => (0, "", unit.to_owned()),
        l if l < 1e6 => (3, "k", unit.to_owned()),
        l if l < 1e9 => (6, "M", unit.to_owned()),
        l if l < 1e12 => (9, "G", unit.to_owned()),
        _ => (exponent, "", times()),
    }
}

#[cfg(test)]
#[path = "../../tests/unit/plot/axis.rs"]
mod tests;
