use super::*;
use crate::channel::{Fading, FadingConfig, Impairments, ImpairmentsConfig, Profile, Stage};
use crate::dsp::db;
use crate::ofdm::{Config, RandomBits, Source, Transmitter};

fn frame() -> Vec<Complex32> {
    let config = Config { symbols: 50, ..Config::default() };
    let mut bits = vec![0; config.payload_bits()];
    RandomBits::new(3).fill(&mut bits);
    let mut frame = vec![Complex32::ZERO; config.frame_samples()];
    Transmitter::new(config, Source::Repeat(bits)).unwrap().fill(&mut frame);
    frame
}

fn received(frame: &[Complex32], n: usize, impairments: &ImpairmentsConfig) -> Vec<Complex32> {
    let sent: Vec<Complex32> = (0..n).map(|i| frame[(i + 777) % frame.len()]).collect();
    let mut rx = Vec::new();
    Impairments::new(impairments, 30.0, 1).unwrap().process(&sent, &mut rx);
    rx.iter().map(|z| z * 0.25).collect()
}

/// What one complex gain leaves in pieces of 512, as a tracker would follow the phase.
fn nmse_db(tx: &[Complex32], rx: &[Complex32]) -> f64 {
    let (mut error, mut power) = (0.0, 0.0);
    for (x, y) in tx.chunks(512).zip(rx.chunks(512)) {
        let h: Complex32 = y.iter().zip(x).map(|(y, x)| y * x.conj()).sum::<Complex32>() / x.iter().map(|x| x.norm_sqr()).sum::<f32>();
        error += y.iter().zip(x).map(|(y, x)| (y - x * h).norm_sqr()).sum::<f32>();
        power += y.iter().map(|y| y.norm_sqr()).sum::<f32>();
    }
    db(error.into(), power.into())
}

#[test]
fn delay_carrier_offset_and_drift_are_followed() {
    let frame = frame();
    for (delay, cfo, ppm) in
        [(0.0, 0.0, 0.0), (100.3, 0.0, 0.0), (40.0, 2e-3, 0.0), (7.0, 0.0, 5.0), (3000.6, -1e-3, -50.0), (3.2, 2e-3, 50.0)]
    {
        let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, sample_offset_ppm: ppm, ..ImpairmentsConfig::default() };
        let rx = received(&frame, 1_200_000, &impairments);
        let (mut sync, mut out) = (Synchroniser::repeated(frame.clone()).unwrap(), Pairs::default());
        for piece in rx.chunks(5000) {
            sync.receive(piece, None);
            sync.run(&mut out).unwrap();
        }
        let status = sync.status();
        println!("{delay} {cfo} {ppm}: {:?} {status:?}", out.gaps);
        assert_eq!((out.tx.len(), status.searches), (out.rx.len(), 1), "{delay} {cfo} {ppm}");
        assert!(out.tx.len() > 1_190_000);
        assert!((status.cfo - cfo).abs() < 1e-6 && (status.clock_ppm + ppm).abs() < 0.2, "{status:?}");
        let nmse = nmse_db(&out.tx[600_000..], &out.rx[600_000..]);
        assert!(nmse < -29.0, "delay {delay}, cfo {cfo}, {ppm} ppm: {nmse} dB");
    }
}

#[test]
fn a_small_part_of_a_sample_is_undone_as_well() {
    let frame = frame();
    for delay in [40.0, 40.03, 40.06, 40.1, 39.95] {
        let rx = received(&frame, 100_000, &ImpairmentsConfig { delay, ..ImpairmentsConfig::default() });
        let (out, status) = follow(&frame, &rx);
        let nmse = nmse_db(&out.tx[10_000..], &out.rx[10_000..]);
        // Left as it is, a tenth of a sample leaves -17 dB.
        assert!(nmse < -29.0, "delay {delay}: {nmse} dB, {status:?}");
    }
}

#[test]
fn gaps_keep_the_pairs_together_and_have_the_right_length() {
    let frame = frame();
    for (delay, cfo) in [(40.0, 0.0), (40.4, 1e-3)] {
        let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, ..ImpairmentsConfig::default() };
        let rx = received(&frame, 400_000, &impairments);
        let (mut sync, mut out) = (Synchroniser::repeated(frame.clone()).unwrap(), Pairs::default());
        let (mut at, mut lost, mut gap) = (0, 0, None);
        for k in 0.. {
            let n = 7000 + 13 * (k % 50);
            let Some(piece) = rx.get(at..at + n) else { break };
            sync.receive(piece, gap);
            sync.run(&mut out).unwrap();
            let missing = 1 + 37 * (k % 40);
            gap = Some(missing as u64);
            at += n + missing;
            lost += missing;
        }
        assert!(lost > 20_000 && out.gaps.len() > 30);
        // Pairs and gaps together are all the time there was, up to what waits inside.
        let gaps: u64 = out.gaps.iter().map(|g| g.1).sum();
        assert!((out.tx.len() as u64 + gaps).abs_diff(400_000) < 30_000);
        assert!(nmse_db(&out.tx, &out.rx) < -28.0, "{}", nmse_db(&out.tx, &out.rx));
        assert_eq!((sync.status().searches, sync.status().slips, sync.status().doubtful_samples), (1, 0, 0), "{:?}", sync.status());
    }
}

/// A channel between a repeated frame and a receiver.
struct Link {
    paths: u32,
    doppler: f64,
    snr_db: f64,
    impairments: ImpairmentsConfig,
}

impl Default for Link {
    fn default() -> Self {
        Self { paths: 4, doppler: 2e-6, snr_db: 30.0, impairments: ImpairmentsConfig { delay: 33.0, ..ImpairmentsConfig::default() } }
    }
}

impl Link {
    fn receive(&self, frame: &[Complex32], n: usize, seed: u64) -> Vec<Complex32> {
        let mut sent: Vec<Complex32> = (0..n + 200).map(|i| frame[i % frame.len()]).collect();
        let config = FadingConfig::new(Profile::exponential(self.paths, 3.0), self.doppler);
        Fading::new(&config, seed).unwrap().process(&mut sent);
        let mut rx = Vec::new();
        Impairments::new(&self.impairments, self.snr_db, seed).unwrap().process(&sent, &mut rx);
        rx.truncate(n);
        rx
    }
}

/// What a tracker of 4 taps, fitted anew in every 128 pairs, leaves: in dB, over all pairs from `from` on whose window holds no gap.
fn fit_db(pairs: &Pairs, from: usize) -> f64 {
    use crate::iq::align::normal::{Equations, Grid, WIDE};
    let (mut left, mut power) = (0.0, 0.0);
    for start in (from + WIDE..pairs.rx.len().saturating_sub(128)).step_by(128) {
        let window = start + 1 - WIDE..start + 128;
        if pairs.gaps.iter().any(|g| window.contains(&g.0)) {
            continue;
        }
        let x: Vec<_> = pairs.tx[window].iter().map(|z| crate::dsp::wide(*z)).collect();
        let y: Vec<_> = pairs.rx[start..start + 128].iter().map(|z| crate::dsp::wide(*z)).collect();
        let equations = Equations::new(&x, &y);
        let fit = equations.factor(Grid { first: 0, paths: 4 }).halve(&equations.cross);
        left += (equations.power - fit.iter().map(|z| z.norm_sqr()).sum::<f64>()) * 128.0 / 124.0;
        power += equations.power;
    }
    db(left, power)
}

fn follow(frame: &[Complex32], rx: &[Complex32]) -> (Pairs, Status) {
    let (mut sync, mut out) = (Synchroniser::repeated(frame.to_vec()).unwrap(), Pairs::default());
    for piece in rx.chunks(3000) {
        sync.receive(piece, None);
        sync.run(&mut out).unwrap();
    }
    sync.finish(&mut out).unwrap();
    (out, sync.status().clone())
}

#[test]
fn one_clock_is_never_touched() {
    let frame = frame();
    for (paths, doppler, snr_db) in [(1, 0.0, 30.0), (4, 2e-6, 30.0), (4, 2e-6, 10.0), (4, 1e-5, 30.0), (4, 1e-3, 20.0), (2, 4e-5, 0.0)] {
        for seed in 0..2 {
            let rx = Link { paths, doppler, snr_db, ..Link::default() }.receive(&frame, 400_000, seed);
            let (out, status) = follow(&frame, &rx);
            let told =
                format!("{paths} paths, {doppler:e}, {snr_db} dB, seed {seed}: {} pairs, gaps {:?}, {status:?}", out.rx.len(), out.gaps);
            println!("{told}");
            assert!(passed(&out, &rx), "{told}");
            assert!(
                out.rx.len() > 390_000 && status.slips == 0 && status.searches == 1 && status.clock_ppm == 0.0 && status.cfo == 0.0,
                "{told}"
            );
        }
    }
}

/// Whether the received samples have only passed.
fn passed(out: &Pairs, rx: &[Complex32]) -> bool {
    out.origins.iter().enumerate().all(|(i, &(at, _, item))| {
        let end = out.origins.get(i + 1).map_or(out.rx.len(), |o| o.0);
        out.rx[at..end] == rx[item as usize..item as usize + end - at]
    })
}

#[test]
fn where_one_clock_is_told_no_drift_is_followed() {
    let frame = frame();
    let impairments = ImpairmentsConfig { delay: 33.0, sample_offset_ppm: 20.0, ..ImpairmentsConfig::default() };
    let rx = Link { paths: 3, impairments, ..Link::default() }.receive(&frame, 400_000, 1);
    for told in [false, true] {
        let sync = Synchroniser::repeated(frame.clone()).unwrap();
        let (mut sync, mut out) = (if told { sync.one_clock() } else { sync }, Pairs::default());
        sync.receive(&rx, None);
        sync.finish(&mut out).unwrap();
        let status = sync.status();
        println!("told {told}: {} pairs, {status:?}", out.rx.len());
        assert!(out.rx.len() > 100_000, "{status:?}");
        let clock = if told { 0.0 } else { -20.0 };
        assert!((status.clock_ppm - clock).abs() < if told { f64::MIN_POSITIVE } else { 0.5 }, "{status:?}");
    }
}

#[test]
fn two_clocks_are_as_good_as_one() {
    let frame = frame();
    for (paths, doppler) in [(1, 1e-6), (4, 1e-5)] {
        let (mut one, mut two) = (0.0, 0.0);
        for (seed, cfo, ppm) in [(0, 2e-3, 5.0), (1, 1e-4, 20.0), (2, -2e-3, -50.0)] {
            let (out, _) = follow(&frame, &Link { paths, doppler, ..Link::default() }.receive(&frame, 500_000, seed));
            let best = fit_db(&out, 200_000);
            let impairments =
                ImpairmentsConfig { delay: 33.4, carrier_offset: cfo, sample_offset_ppm: ppm, ..ImpairmentsConfig::default() };
            let (out, status) = follow(&frame, &Link { paths, doppler, impairments, ..Link::default() }.receive(&frame, 500_000, seed));
            let nmse = fit_db(&out, 200_000);
            println!("{paths} paths, {doppler:e}, seed {seed}, cfo {cfo:e}, {ppm} ppm: {best:.2} dB, {:+.2} dB; {status:?}", nmse - best);
            assert!(
                (status.clock_ppm + ppm).abs() < 0.1 && (status.slips, status.searches, status.doubtful_samples) == (0, 1, 0),
                "{status:?}"
            );
            (one, two) = (one + best / 3.0, two + nmse / 3.0);
        }
        assert!(two < one + 1.0, "{paths} paths, {doppler:e}: {two} dB instead of {one} dB");
    }
}

#[test]
fn slips_of_any_size_are_found_soon_and_marked() {
    let frame = frame();
    for (paths, doppler) in [(1, 0.0), (4, 2e-6), (4, 1e-4)] {
        for slip in [1i64, 2, 3, 7, 12, 300, 5000, -1, -2, -9] {
            let seed = slip.unsigned_abs() + 50 * u64::from(slip < 0);
            let rx = Link { paths, doppler, ..Link::default() }.receive(&frame, 160_000, seed);
            let at = 100_001 + 777 * (slip.unsigned_abs() as usize % 13);
            let (clean, _) = follow(&frame, &rx);
            let slipped = [&rx[..at], &rx[(at as i64 + slip) as usize..]].concat();
            let (out, status) = follow(&frame, &slipped);
            let (nmse, best) = (fit_db(&out, 0), fit_db(&clean, 0));
            let told =
                format!("{paths} paths, {doppler:e}, slip {slip} at {at}: gaps {:?}, {nmse:.2} dB of {best:.2}, {status:?}", out.gaps);
            println!("{told}");
            // Nothing wrong goes out; what is left out begins before the slip and ends soon behind it.
            assert!(nmse < best + 0.5, "{told}");
            let resumed = out.origins.iter().find(|o| o.2 > at as u64).unwrap().2;
            assert!(!out.gaps.is_empty() && out.gaps[0].0 <= at && resumed < at as u64 + 20_000, "resumed at {resumed}: {told}");
            assert!(status.slips + status.searches >= 2 && status.state == State::Locked, "{told}");
            if slip.abs() <= 3 {
                // So small a slip is known to the sample: what was left out, and what never came.
                assert_eq!(out.gaps.iter().map(|g| g.1 as i64).sum::<i64>(), status.doubtful_samples as i64 + slip, "{told}");
            }
        }
    }
}

#[test]
fn noise_silence_and_other_frames_are_never_locked_to() {
    let frame = frame();
    let mut other = frame.clone();
    other.rotate_left(1000);
    other.iter_mut().for_each(|z| *z = z.conj() * *z);
    let mut noise = vec![Complex32::ZERO; 120_000];
    crate::channel::Noise::new(0.0, 5).unwrap().process(&mut noise);
    for (name, samples) in [
        ("noise", noise.clone()),
        ("silence", vec![Complex32::ZERO; 120_000]),
        ("another frame", (0..120_000).map(|n| other[n % other.len()]).collect()),
        ("not numbers", vec![Complex32::new(f32::NAN, 0.0); 120_000]),
    ] {
        let (out, status) = follow(&frame, &samples);
        assert!(out.rx.is_empty() && status.state != State::Locked && status.failure.is_some(), "{name}: {status:?}");
        // Behind a signal that was locked to.
        let before = Link::default().receive(&frame, 100_000, 1);
        let (out, status) = follow(&frame, &[before.clone(), samples.clone(), before.clone()].concat());
        let inside = out.origins.iter().filter(|o| (100_000..220_000).contains(&o.2)).count();
        println!(
            "{name}: {} pairs, {inside} inside, {:?} {:?} {status:?}",
            out.rx.len(),
            out.gaps,
            out.origins.iter().filter(|o| (90_000..230_000).contains(&o.2)).collect::<Vec<_>>()
        );
        assert!(inside == 0 && status.state == State::Locked && out.rx.len() > 160_000, "{name}: {status:?}");
        assert!(fit_db(&out, 0) < -25.0, "{name}: {}", fit_db(&out, 0));
    }
}

#[test]
fn a_level_that_changes_keeps_its_place_and_is_told() {
    let frame = frame();
    for step in [11.2_f32, 1.0 / 11.2] {
        let mut rx = Link { doppler: 0.0, ..Link::default() }.receive(&frame, 300_000, 4);
        let (_, before) = follow(&frame, &rx);
        rx[150_000..].iter_mut().for_each(|z| *z *= step);
        let (out, status) = follow(&frame, &rx);
        assert_eq!((status.slips, status.searches, out.gaps.len()), (0, 1, 0), "{status:?}");
        assert_eq!(out.rx, rx[..out.rx.len()], "levels stay as they were received");
        assert!((status.gain / before.gain / f64::from(step) - 1.0).abs() < 0.05, "{} {}", status.gain, before.gain);
    }
}

#[test]
fn what_is_said_to_be_missing_is_checked() {
    let frame = frame();
    for (claimed, missing) in [(777, 777), (776, 777), (3, 0), (1, 0), (0, 0), (0, 2), (5000, 0), (40, 300)] {
        let rx = Link::default().receive(&frame, 200_000, claimed + missing);
        let (clean, _) = follow(&frame, &rx);
        let (mut sync, mut out) = (Synchroniser::repeated(frame.clone()).unwrap(), Pairs::default());
        sync.receive(&rx[..80_000], None);
        sync.receive(&rx[80_000 + missing as usize..], Some(claimed));
        sync.finish(&mut out).unwrap();
        let status = sync.status();
        let told = format!("claimed {claimed}, missing {missing}: {:?} {status:?}", out.gaps);
        println!("{told}");
        assert!(fit_db(&out, 0) < fit_db(&clean, 0) + 0.5, "{told}");
        assert_eq!(status.state, State::Locked, "{told}");
        match (claimed, missing) {
            (0, _) => assert!(out.gaps.iter().all(|g| g.1 == 0) && out.gaps.len() == 1, "{told}"),
            (_, 0) => assert!(out.gaps.is_empty() && status.gap_samples == 0, "{told}"),
            (40, _) => assert!(status.searches == 2, "{told}"),
            _ => assert!(out.gaps == [(80_000, missing)] && status.gap_samples == missing && status.doubtful_samples == 0, "{told}"),
        }
    }
}

#[test]
fn results_do_not_depend_on_how_the_stream_is_cut() {
    let frame = frame();
    let impairments = ImpairmentsConfig { delay: 33.4, carrier_offset: 1e-4, sample_offset_ppm: 20.0, ..ImpairmentsConfig::default() };
    let rx = Link { impairments, ..Link::default() }.receive(&frame, 150_000, 3);
    let run = |cut: usize| {
        let (mut sync, mut out) = (Synchroniser::repeated(frame.clone()).unwrap(), Pairs::default());
        for (stretch, gap) in [(&rx[..60_000], None), (&rx[60_500..100_000], Some(500)), (&rx[100_003..], None)] {
            for (i, piece) in stretch.chunks(cut).enumerate() {
                sync.receive(piece, gap.filter(|_| i == 0));
                sync.run(&mut out).unwrap();
            }
        }
        sync.finish(&mut out).unwrap();
        (out, sync.status().clone())
    };
    let whole = run(usize::MAX);
    assert!(whole.0.rx.len() > 120_000);
    for cut in [1000, 4096, 33_333] {
        assert!(run(cut) == whole, "pieces of {cut}");
    }
}

#[test]
fn two_streams_are_followed_and_a_gap_of_any_length_takes_no_time() {
    let mut tx = vec![Complex32::ZERO; 400_000];
    Transmitter::new(Config::default(), Source::Continuous).unwrap().fill(&mut tx);
    let rx = Link { doppler: 1e-6, ..Link::default() }.receive(&tx, 399_000, 2);
    // The receiver has lost three samples without a word, and both lose a long stretch.
    let (mut sync, mut out) = (Synchroniser::search(Options { samples: 1 << 15, ..Options::default() }).follow(), Pairs::default());
    let long = 1_000_000;
    sync.send(&tx[..300_000], None);
    sync.send(&tx[300_000..], Some(long));
    sync.receive(&rx[..150_000], None);
    sync.receive(&rx[150_003..300_033], None);
    sync.receive(&rx[300_033..], Some(long));
    sync.finish(&mut out).unwrap();
    let status = sync.status();
    println!("{:?} {status:?}", out.gaps);
    assert!(out.rx.len() > 375_000 && status.slips == 1 && status.searches == 1, "{status:?}");
    // The pairs that would be interpolated from missing samples are left out as well.
    assert!(out.gaps.iter().any(|g| (long..long + 120).contains(&g.1)), "{:?}", out.gaps);
    assert!(fit_db(&out, 0) < -26.0, "{}", fit_db(&out, 0));
}

#[test]
fn any_clock_is_found_through_any_two_paths() {
    let frame = frame();
    for (k, ppm) in [50.0, -50.0, 50.0, 50.0, 35.0, 50.0, -20.0, 50.0].into_iter().enumerate() {
        let cfo = [0.0, -4e-4, 4e-4, 1e-4][k % 4];
        let impairments = ImpairmentsConfig { delay: 40.0, carrier_offset: cfo, sample_offset_ppm: ppm, ..ImpairmentsConfig::default() };
        let rx = Link { paths: 2, doppler: 4e-6, impairments, ..Link::default() }.receive(&frame, 150_000, k as u64 + 20);
        let (out, status) = follow(&frame, &rx);
        println!("{ppm} ppm, cfo {cfo:e}: {:.2} dB, {status:?}", fit_db(&out, 50_000));
        assert!((status.clock_ppm + ppm).abs() < 0.5 && status.doubtful_samples == 0, "{ppm} ppm, cfo {cfo:e}: {status:?}");
    }
}

#[test]
fn paths_that_come_back_behind_a_gap_are_no_drift() {
    let frame = frame();
    for (doppler, gap, seed) in [(1e-5, 30_000, 1), (1e-5, 30_000, 2), (1e-6, 0, 3), (2e-6, 100_000, 4), (1e-5, 7000, 5), (4e-6, 0, 6)] {
        // Saturated, as a limiter does it: a third of the samples is clipped.
        let bent: Vec<Complex32> = frame.iter().map(|z| z / z.norm_sqr().max(1.0).sqrt()).collect();
        let mut fading = Fading::new(&FadingConfig::new(Profile::exponential(4, 3.0), doppler), seed).unwrap();
        let mut noise = crate::channel::Noise::new(30.0, seed).unwrap();
        let (mut sync, mut out, mut time, mut worst) = (Synchroniser::repeated(frame.clone()).unwrap(), Pairs::default(), 0, 0.0f64);
        let mut channel = |n: usize| {
            let mut piece: Vec<Complex32> = (time..time + n).map(|i| bent[i % bent.len()]).collect();
            time += n;
            fading.process(&mut piece);
            noise.process(&mut piece);
            piece
        };
        for k in 0..40 {
            sync.receive(&channel(40_000), (k > 0 && gap > 0).then_some(gap as u64));
            channel(gap);
            out.clear();
            sync.run(&mut out).unwrap();
            worst = worst.max(sync.status().clock_ppm.abs());
        }
        let status = sync.status();
        println!("doppler {doppler:e}, gaps of {gap}, seed {seed}: at most {worst:.2} ppm, {status:?}");
        assert!(
            worst == 0.0 && (status.slips, status.searches, status.gap_samples) == (0, 1, 39 * gap as u64),
            "doppler {doppler:e}, gaps of {gap}: {worst} ppm, {status:?}"
        );
    }
}

#[test]
fn two_clocks_are_told_through_saturation_and_noise() {
    let frame = frame();
    // Rapp's amplifier with the signal's mean power at saturation: its distortion is 8 dB below the signal.
    let bent: Vec<Complex32> = frame.iter().map(|z| z / (1.0 + z.norm_sqr().powi(2)).powf(0.25)).collect();
    for (snr_db, most) in [(30.0, 0), (10.0, 3)] {
        let mut wrong = 0;
        for k in 0..24 {
            let (doppler, ppm) = ([2e-6, 1e-5, 1e-4][k % 3], [50.0, -50.0, 20.0, -10.0][k / 3 % 4]);
            let impairments =
                ImpairmentsConfig { delay: 40.0, carrier_offset: 4e-4, sample_offset_ppm: ppm, ..ImpairmentsConfig::default() };
            let link = Link { paths: 4, doppler, impairments, snr_db };
            let (out, status) = follow(&frame, &link.receive(&bent, 400_000, 11 + k as u64));
            let off = status.delay_samples - (40.0 - 0.4 * ppm);
            println!(
                "{snr_db} dB, {doppler:e}, {ppm} ppm: {:.3} ppm, {off:.3} samples, {:.2} dB",
                status.clock_ppm + ppm,
                fit_db(&out, 200_000)
            );
            wrong += usize::from((status.clock_ppm + ppm).abs() > 1.0 || status.slips > 0 || status.searches > 1 || off.abs() > 0.2);
        }
        assert!(wrong <= most, "{wrong} of 24 wrong at {snr_db} dB");
    }
}

#[test]
fn what_is_left_of_one_stream_at_the_end_of_the_other_is_no_gap() {
    let frame = frame();
    let rx = received(&frame, 50_000, &ImpairmentsConfig { delay: 40.4, ..ImpairmentsConfig::default() });
    let tx: Vec<Complex32> = (0..50_000).map(|i| frame[(i + 777) % frame.len()]).collect();
    let (mut sync, mut out) = (Synchroniser::known(Alignment::only_delay(40.4)), Pairs::default());
    sync.send(&tx, None);
    sync.receive(&rx, None);
    // Whoever asks again after the end gets no other answer.
    for _ in 0..3 {
        sync.finish(&mut out).unwrap();
    }
    assert_eq!((out.tx.len(), sync.status().gap_samples, sync.status().rim_samples), (rx.len() - 40, 0, 0), "{:?}", sync.status());
}

/// OFDM that does not repeat.
fn stream(samples: usize) -> Vec<Complex32> {
    let mut stream = vec![Complex32::ZERO; samples];
    Transmitter::new(Config::default(), Source::Continuous).unwrap().fill(&mut stream);
    stream
}

#[test]
fn two_saturated_streams_with_two_clocks_are_followed() {
    for (seed, ppm) in [(1, 20.0), (2, -50.0), (3, 50.0)] {
        let tx = stream(600_000);
        let bent: Vec<Complex32> = tx.iter().map(|z| z / (1.0 + z.norm_sqr().powi(2)).powf(0.25)).collect();
        let impairments = ImpairmentsConfig { delay: 40.0, carrier_offset: 4e-4, sample_offset_ppm: ppm, ..ImpairmentsConfig::default() };
        let rx = Link { doppler: 1e-5, impairments, ..Link::default() }.receive(&bent, 599_000, seed);
        let (mut sync, mut out) = (Synchroniser::search(Options::default()).follow(), Pairs::default());
        for (tx, rx) in tx.chunks(5000).zip(rx.chunks(5000)) {
            sync.send(tx, None);
            sync.receive(rx, None);
            sync.run(&mut out).unwrap();
        }
        sync.finish(&mut out).unwrap();
        let (status, nmse) = (sync.status(), fit_db(&out, 200_000));
        println!("{ppm} ppm: {nmse:.2} dB, {status:?}");
        assert!(
            (status.clock_ppm + ppm).abs() < 1.0 && status.slips == 0 && status.searches == 1 && nmse < -13.0,
            "{ppm} ppm: {nmse} dB, {status:?}"
        );
        assert!(out.rx.len() > 590_000, "{} pairs", out.rx.len());
    }
}

#[test]
fn what_silence_taught_of_an_amplifier_is_forgotten() {
    use super::{curve::Curve, probe::Probe};
    let stream = stream(24_000);
    let saturated = |z: Complex32| z / (1.0 + z.norm_sqr().powi(2)).powf(0.25);
    let learn = |curve: &mut Curve, level: f32| {
        for at in (1..20).map(|k| 512 * k) {
            let received: Vec<Complex32> = stream[at..at + 512].iter().map(|z| saturated(z * level)).collect();
            let sent = |place: i64, out: &mut [Complex32]| {
                out.iter_mut().zip(&stream[(at as i64 + place) as usize..]).for_each(|(out, z)| *out = z * level);
            };
            curve.learn(&Probe::new(&received, &Curve::default(), sent).unwrap(), super::probe::grid((0, 1)));
        }
    };
    let (mut first_quiet, mut loud) = (Curve::default(), Curve::default());
    learn(&mut first_quiet, 1e-4);
    learn(&mut first_quiet, 1.0);
    learn(&mut loud, 1.0);
    let sent: Vec<_> = stream[20_000..24_000].iter().map(|z| crate::dsp::wide(*z)).collect();
    let bent = loud.bend(&sent);
    assert_eq!(first_quiet.bend(&sent), bent);
    let truth = stream[20_000..24_000].iter().map(|z| crate::dsp::wide(saturated(*z)));
    let (inner, energy) = bent
        .iter()
        .zip(truth.clone())
        .fold((num_complex::Complex64::ZERO, 0.0), |(inner, energy), (b, t)| (inner + b.conj() * t, energy + b.norm_sqr()));
    let left: f64 = bent.iter().zip(truth.clone()).map(|(b, t)| (t - b * inner / energy).norm_sqr()).sum();
    let left = db(left, truth.map(|t| t.norm_sqr()).sum());
    assert!(left < -25.0, "{left} dB");
}
