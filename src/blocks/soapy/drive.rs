//! Whether a frame fits a transmitter's converter.

use num_complex::Complex32;

use crate::dsp::db;
use crate::error::require;
use crate::{Error, Result};

/// Distortion by clipping, in dB below the signal, from which on a frame is refused.
pub(crate) const CLIPPING_LIMIT_DB: f64 = -40.0;

/// How a frame drives the converter that transmits it, whose full scale is an amplitude of 1 in either part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drive {
    /// Mean power in dB of that of a tone whose amplitude is full scale.
    pub mean_dbfs: f64,
    /// Largest real or imaginary part in dB of full scale.
    pub peak_dbfs: f64,
    /// Largest power of a sample over the mean power in dB.
    pub papr_db: f64,
    /// Share of the samples that the converter clips.
    pub clipped: f64,
    /// Power of what clipping changes over that of the frame in dB.
    pub distortion_db: f64,
}

impl Drive {
    /// What becomes of `frame` when it is transmitted with the amplitude `level`.
    pub(crate) fn of(frame: &[Complex32], level: f32) -> Result<Self> {
        require(level.is_finite() && level > 0.0, "level", "more than 0, from a back-off that is a number of dB", f64::from(level))?;
        if let Some(at) = frame.iter().position(|z| !z.is_finite()) {
            return Err(Error::Data(format!("sample {at} of the frame to be transmitted is {}: it must be a number", frame[at])));
        }
        let (mut energy, mut peak, mut part, mut clipped, mut changed) = (0.0, 0.0f64, 0.0f64, 0u64, 0.0);
        for z in frame {
            let (re, im) = (f64::from(z.re * level), f64::from(z.im * level));
            let power = re * re + im * im;
            energy += power;
            peak = peak.max(power);
            part = part.max(re.abs()).max(im.abs());
            let beyond = |x: f64| (x.abs() - 1.0).max(0.0);
            clipped += u64::from(beyond(re) > 0.0 || beyond(im) > 0.0);
            changed += beyond(re).powi(2) + beyond(im).powi(2);
        }
        let mean = energy / frame.len().max(1) as f64;
        require(mean > 0.0, "frame", "one that is not silent", mean)?;
        Ok(Self {
            mean_dbfs: db(mean, 1.0),
            peak_dbfs: db(part * part, 1.0),
            papr_db: db(peak, mean),
            clipped: clipped as f64 / frame.len() as f64,
            distortion_db: db(changed, energy),
        })
    }

    /// Refuses what clipping would distort by more than `CLIPPING_LIMIT_DB`.
    pub(crate) fn check(&self) -> Result<()> {
        if self.distortion_db <= CLIPPING_LIMIT_DB {
            return Ok(());
        }
        let expected = format!(
            "at least {:.1} dB for a frame with a peak {:.1} dB above its mean power, or clipping be allowed: the converter would clip {:.2} % of its samples and distort it by {:.0} dB",
            self.peak_dbfs - self.mean_dbfs,
            self.papr_db,
            100.0 * self.clipped,
            self.distortion_db
        );
        Err(Error::parameter("backoff", expected, format!("{:.1}", -self.mean_dbfs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(amplitude: f32) -> Vec<Complex32> {
        (0..1000).map(|n| Complex32::from_polar(amplitude, 0.1 * n as f32)).collect()
    }

    #[test]
    fn a_tone_fits_up_to_full_scale() {
        let drive = Drive::of(&tone(1.0), 0.5).unwrap();
        assert!((drive.mean_dbfs + 6.02).abs() < 0.01 && (drive.peak_dbfs + 6.02).abs() < 0.01 && drive.papr_db.abs() < 0.01);
        assert_eq!((drive.clipped, drive.distortion_db), (0.0, crate::dsp::db(0.0, 1.0)));
        drive.check().unwrap();
        // Cut at sqrt(1/2) each part of a tone loses 2/pi of the integral of (cos - cos 45°)² from 0 to 45°.
        let drive = Drive::of(&tone(1.0), 2f32.sqrt()).unwrap();
        let (quarter, level) = (std::f64::consts::FRAC_PI_4, 0.5f64.sqrt());
        let lost = 4.0 / std::f64::consts::PI * (quarter / 2.0 + 0.25 - 2.0 * level * quarter.sin() + level * level * quarter);
        assert!((drive.distortion_db - db(lost, 1.0)).abs() < 0.2, "{drive:?}, {}", db(lost, 1.0));
        assert!(drive.clipped > 0.95);
    }

    #[test]
    fn a_square_fits_up_to_its_corners() {
        let part = |n: u32| (n as f32 - 511.5) / 1024.0;
        let square: Vec<_> = (0..1 << 20).map(|n| Complex32::new(part(n % 1024), part(n / 1024))).collect();
        Drive::of(&square, 1.9).unwrap().check().unwrap();
        assert!(Drive::of(&square, 10.0).unwrap().check().is_err());
    }

    #[test]
    fn too_much_is_refused_by_name_with_the_remedy() {
        let refused = |frame: &[Complex32], level: f32| Drive::of(frame, level).and_then(|d| d.check()).unwrap_err().to_string();
        let message = refused(&tone(1.0), 10.0);
        assert!(message.starts_with("backoff must be at least 0.0 dB") && message.ends_with("got -20.0"), "{message}");
        assert!(refused(&tone(1.0), f32::NAN).starts_with("level must be more than 0"));
        assert!(refused(&[Complex32::new(0.0, f32::NAN)], 1.0).contains("sample 0 of the frame"));
        assert!(refused(&[Complex32::ZERO; 8], 1.0).contains("not silent"));
        // One sample in 2000 that holds two thirds of the energy: 31 dB of PAPR.
        let mut spiky = vec![Complex32::new(1.0, 0.0); 2000];
        spiky[77] = Complex32::new(60.0, 0.0);
        let message = refused(&spiky, 0.2);
        assert!(message.contains("31.1 dB above its mean power"), "{message}");
    }
}
