//! Pictures: what is drawn is what was given, and every kind renders, whatever the numbers are.

use super::*;
use crate::Complex64;
use crate::common::read_back;

/// A small generator: pictures need plausible noise, not good noise.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn complex(&mut self) -> Complex64 {
        Complex64::new(self.normal(), self.normal()) / 2f64.sqrt()
    }
}

fn samples() -> Axis {
    Axis::new("time", "samples")
}

fn learning(noise: &mut Noise, from: f64, to: f64, n: usize, every: f64) -> Vec<[f64; 2]> {
    (0..n).map(|i| [i as f64 * every, to + (from - to) * (-(i as f64) / (0.06 * n as f64)).exp() + 0.6 * noise.normal()]).collect()
}

/// Every kind of picture with plausible numbers.
fn gallery() -> Vec<(&'static str, Figure)> {
    let noise = &mut Noise(1);
    let mut all = Vec::new();

    let filters = [
        ("nlms", -6.3),
        ("rls", -7.2),
        ("norma", -9.6),
        ("fklms", -9.7),
        ("qklms", -8.5),
        ("krlst", -10.8),
        ("mp-rls", -9.5),
        ("residual", -17.5),
        ("ensemble", -17.3),
    ];
    let curves: Vec<NmseCurve> = filters
        .iter()
        .map(|&(name, db)| NmseCurve { name: name.into(), points: learning(noise, 1.0, db, 160, 50.0), average_db: Some(db) })
        .collect();
    all.push(("nmse", nmse_over_time("Tracking a saturated fading channel", samples(), &curves)));
    let mut wild = curves[..3].to_vec();
    wild.push(NmseCurve {
        name: "kalman".into(),
        points: (0..160).map(|i| [f64::from(i) * 50.0, 1.2 * f64::from(i) - 9.0]).collect(),
        average_db: Some(f64::INFINITY),
    });
    all.push(("nmse_diverged", nmse_over_time("One filter diverges", samples(), &wild)));

    let mut measured = AmplifierCurve { name: "measured".into(), ..Default::default() };
    for _ in 0..6000 {
        let a = noise.complex().norm();
        let rapp = a / (1.0 + a.powi(4)).powf(0.25);
        measured.input.push(a);
        measured.output.push(rapp + 0.03 * noise.normal());
        measured.phase_deg.push(12.0 * a * a / (1.0 + a * a) + 2.0 * noise.normal() / (a + 0.1));
    }
    let input: Vec<f64> = (0..80).map(|i| f64::from(i) / 30.0).collect();
    let learned = AmplifierCurve {
        name: "ensemble".into(),
        output: input.iter().map(|a| a / (1.0 + a.powi(4)).powf(0.25)).collect(),
        phase_deg: input.iter().map(|a| 12.0 * a * a / (1.0 + a * a)).collect(),
        input,
    };
    all.push(("am", am_am_pm("Power amplifier", &measured, &[learned])));

    let mut spectrum = |level: f64, floor: f64| -> Vec<[f64; 2]> {
        (0..1024)
            .map(|i| {
                let f = (f64::from(i) - 512.0) / 1024.0 * 10e6;
                let skirt = -10.0 * (f.abs() / 4.1e6).powi(8).ln_1p();
                [f, (level + skirt).max(floor) + 1.2 * noise.normal()]
            })
            .collect()
    };
    let signals = [
        Series::new("rx", spectrum(-62.0, -98.0)),
        Series::new("prediction", spectrum(-63.0, -105.0)),
        Series::new("error", spectrum(-80.0, -97.0)),
    ];
    all.push(("psd", psd("Power spectral density", Axis::new("frequency", "Hz"), "dBFS/Hz", &signals)));

    let grid = Grid::of([0.0, 0.02], [-5e6, 5e6], 2000, 256, |t, f| {
        let on = (t * 400.0).fract() < 0.7 && f.abs() < 4e6;
        (if on { -60.0 } else { -95.0 }) + 3.0 * noise.normal()
    });
    let level = Axis::new("power density", "dBFS/Hz").range(-100.0, -50.0);
    all.push(("spectrogram", spectrogram("Spectrogram", Axis::new("time", "s"), Axis::new("frequency", "Hz"), level, grid)));

    let ideal: Vec<Complex64> =
        (0..16).map(|i| Complex64::new(f64::from(i % 4) - 1.5, f64::from(i / 4) - 1.5) / 1.25f64.sqrt() / 2f64.sqrt()).collect();
    let mut cloud = |spread: f64| (0..8000).map(|i| ideal[i % 16] + spread * noise.complex()).collect::<Vec<_>>();
    let clouds = [
        Constellation { title: "before, EVM 22 %".into(), symbols: cloud(0.22) },
        Constellation { title: "after, EVM 7 %".into(), symbols: cloud(0.07) },
    ];
    all.push(("constellation", constellations("16-QAM before and after equalisation", &clouds, &ideal)));

    let envelope: Vec<f64> = (0..20_000).map(|_| noise.complex().norm()).collect();
    let clipped: Vec<f64> = envelope.iter().map(|a| a.min(1.8)).collect();
    let rayleigh = Series::new("Rayleigh", (0..200).map(|i| f64::from(i) / 60.0).map(|a| [a, 2.0 * a * (-a * a).exp()]).collect());
    let histograms = [Histogram::of("tx", &envelope, 60), Histogram::of("rx", &clipped, 60)];
    all.push(("histogram", envelope_histogram("Envelope", Axis::new("amplitude", "rms"), &histograms, &[rayleigh])));

    let channel = |name: &str, shift: f64| {
        let times: Vec<f64> = (0..1500).map(|i| f64::from(i) * 5.0).collect();
        let tap = |d: f64| {
            let at =
                |t: &f64| Complex64::from_polar(0.7f64.powf(d) * (0.55 + 0.45 * (t / (500.0 + 90.0 * d) + d + shift).sin()), t / 400.0 + d);
            times.iter().map(at).collect::<Vec<_>>()
        };
        Taps { name: name.into(), taps: (0..4).map(|d| tap(f64::from(d))).collect(), times }
    };
    all.push(("taps", taps_over_time("Estimated channel", samples(), &[channel("", 0.0)], Part::Magnitude)));
    let four = [channel("tx 1 → rx 1", 0.0), channel("tx 1 → rx 2", 1.0), channel("tx 2 → rx 1", 2.0), channel("tx 2 → rx 2", 3.0)];
    all.push(("taps_mimo", taps_over_time("A 4-channel MIMO system, real part", samples(), &four, Part::Real)));

    let mut dictionary = |name: &str, lambda: f64, n: usize, reach: f64| {
        let ages: Vec<f64> = (0..n).map(|i| i as f64 * reach / n as f64).collect();
        let sizes = ages.iter().map(|a| lambda.powf(*a) * noise.normal().abs() * 0.3).collect();
        Weights { name: name.into(), ages, sizes }
    };
    let dictionaries = [dictionary("fklms", 0.99, 500, 500.0), dictionary("qklms", 0.9999, 300, 8000.0)];
    all.push(("weights", weights("Weights at the end of the run", &dictionaries)));

    let bar = |name: &str, value: f64| Bar { name: name.into(), value, error: Some(0.04), reference: Some(value + 0.02) };
    let asymptotic =
        [bar("klms", -3.91), bar("qklms", -3.88), bar("norma", -4.58), bar("fklms", -4.58), bar("krlst", -4.96), bar("gp", -5.39)];
    all.push(("bars", bars("Asymptotic NMSE, 2 standard errors", Axis::new("NMSE", "dB"), &asymptotic)));

    let runs: Vec<Vec<[f64; 2]>> = (0..11).map(|_| learning(noise, 0.0, -15.0, 1000, 1.0)).collect();
    let mean: Vec<[f64; 2]> = (0..1000).map(|i| [i as f64, runs.iter().map(|r| r[i][1]).sum::<f64>() / 11.0]).collect();
    let tuning = |step: f64| {
        let curve = |scale: f64| {
            (0..=90)
                .map(|i| f64::from(i) * 4.0)
                .map(|x| [x, scale * (4.0 * ((x - 180.0 - step / 10.0).to_radians().cos() - 1.0)).exp() * 50.0])
                .collect()
        };
        let panel = Panel::new(Axis::new("angle", "°").range(0.0, 360.0), Axis::default()).titled(format!("step {step}"));
        let plain = |points, style| Mark::Line { name: String::new(), note: String::new(), points, style };
        panel.with(plain(curve(1.0), style_of("truth"))).with(plain(curve(1.0 - 20.0 / (step + 20.0)), style_of("fklms")))
    };
    let insets = [25, 50, 100, 500].map(|step| (tuning(f64::from(step)), Some(mean[step as usize]))).to_vec();
    let mut fig3 = repeats("Poisson tuning curve", Axis::new("time", "steps"), Axis::new("NMSE of the rate", "dB"), &runs, "mean", mean);
    fig3.panels[0] = fig3.panels[0].clone().with_insets(0.42, insets).height(460.0);
    all.push(("repeats", fig3));

    let path: Vec<[f64; 2]> = vec![[-1.0, -1.0], [1.0, 1.0]];
    let moments: Vec<Field> = (0..6)
        .map(|k| {
            let c = -1.0 + 0.4 * f64::from(k);
            let circle = (0..=120).map(|i| f64::from(i) * 3f64.to_radians()).map(|a| [c + 0.5 * a.cos(), c + 0.5 * a.sin()]).collect();
            let grid = Grid::of([-1.5, 1.5], [-1.5, 1.5], 61, 61, |x, y| {
                1.0 / (1.0 + (8.0 * ((x - c).hypot(y - c) - 0.5 + 0.08 * (5.0 * x).sin())).exp())
            });
            Field { title: format!("t = {}", k * 200), grid, truth: circle, path: path.clone() }
        })
        .collect();
    let xy = (Axis::new("x₁", "").range(-1.5, 1.5), Axis::new("x₂", "").range(-1.5, 1.5));
    all.push(("fields", fields("A moving disc", 3, &xy.0, &xy.1, &moments)));

    let mut candidate = |_| {
        let (eta, sigma, lambda) =
            (10f64.powf(-2.0 * noise.uniform()), 10f64.powf(2.0 * noise.uniform() - 1.0), 1.0 - 0.2 * noise.uniform());
        let bowl = (eta.log10() + 0.5).powi(2) * 3.0 + (sigma.log10() - 0.1).powi(2) * 6.0 + 60.0 * (lambda - 0.94).powi(2);
        Candidate { values: vec![eta, sigma, lambda], score: -9.6 + bowl + 0.1 * noise.normal() }
    };
    let tried: Vec<Candidate> = (0..200).map(&mut candidate).collect();
    let axes = [Axis::new("step size η", "").log(), Axis::new("kernel width σ", "").log(), Axis::new("forgetting λ", "")];
    all.push(("landscape", landscape("Search for fklms, 200 candidates", &axes[..2], Axis::new("NMSE", "dB"), &tried)));
    all.push(("landscape_3", landscape("Search for fklms, each parameter", &axes, Axis::new("NMSE", "dB"), &tried)));

    let theory = |sigma_q: f64| {
        (1..100).map(|i| f64::from(i) / 100.0).map(|eta| [eta, 0.1 * eta / (2.0 - eta) + sigma_q / (eta * (2.0 - eta))]).collect::<Vec<_>>()
    };
    let mut steady = lines(
        "Steady-state error",
        Axis::new("step size η", "").log(),
        Axis::new("mean squared error", "").log(),
        &[Series::new("σq² = 0.001", theory(1e-3)), Series::new("σq² = 0.01", theory(1e-2)), Series::new("σq² = 0.1", theory(0.1))],
    );
    let measured: Vec<[f64; 2]> = theory(1e-2).into_iter().step_by(12).map(|[x, y]| [x, y * 1.05]).collect();
    let intervals = measured.iter().map(|[x, y]| [[*x, y * 0.9], [*x, y * 1.1]]).collect();
    steady.panels[0].marks.push(Mark::Whiskers { intervals, style: style_of("σq² = 0.01") });
    steady.panels[0].marks.push(Mark::Dots {
        name: "simulated".into(),
        points: measured,
        style: style_of("σq² = 0.01").width(6.0),
        ring: false,
    });
    all.push(("theory", steady));

    let odd = [
        ("nothing", vec![]),
        ("one point", vec![[3.0, -7.0]]),
        ("constant", (0..50).map(|i| [f64::from(i), 4.2]).collect::<Vec<_>>()),
        ("gaps", (0..50).map(|i| [f64::from(i), if i % 13 < 2 { f64::NAN } else { f64::from(i * i) }]).collect()),
        ("small numbers far from zero", (0..50).map(|i| [1e9 + f64::from(i), 1.0 + 1e-6 * f64::from(i % 7)]).collect()),
        (
            "three decades, a title that does not fit into the width of the panel",
            (1..50).map(|i| [f64::from(i) * 1e-5, f64::from(i * i)]).collect(),
        ),
    ];
    let mut edge = Figure::new("Odd numbers").columns(2);
    for (title, points) in odd {
        let y = if title.starts_with("three") { Axis::new("power", "W").log() } else { Axis::new("amplitude", "V") };
        let x = if title.starts_with("three") { Axis::new("time", "s") } else { samples() };
        edge.panels.push(Panel::new(x, y).titled(title).height(230.0).with(Mark::line(title, points)));
    }
    all.push(("edge", edge));

    let pick = |name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, f)| f.clone()).unwrap();
    let mut top = pick("nmse");
    top.panels[0].span = 2;
    all.push(("composed", Figure::compose("A run at a glance", 2, [top, pick("psd"), pick("weights"), pick("spectrogram"), pick("bars")])));
    all
}

/// No coordinate is NaN or infinite; embedded images may spell either.
fn only_finite(svg: &str) -> bool {
    svg.lines().filter(|line| !line.contains("base64,")).all(|line| !line.contains("NaN") && !line.contains("inf"))
}

/// `KAFLOW_GALLERY=folder cargo test --test plot gallery` keeps the pictures for looking at.
#[test]
fn gallery_renders_every_kind_as_svg_and_png() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("KAFLOW_GALLERY").map_or_else(|| temporary.path().to_owned(), Into::into);
    for (name, figure) in gallery() {
        let written = figure.save(folder.join(name)).unwrap();
        assert_eq!(written.len(), 2);
        let svg = std::fs::read_to_string(&written[0]).unwrap();
        assert!(svg.len() < 1_500_000, "{name}: {} bytes", svg.len());
        assert!(only_finite(&svg), "{name}");
        assert!(std::fs::read(&written[1]).unwrap().starts_with(b"\x89PNG"));
    }
}

#[test]
fn what_is_drawn_is_what_was_given() {
    let wave: Vec<[f64; 2]> = (0..120).map(|i| [f64::from(i) * 50.0, -8.0 + 3.0 * (f64::from(i) * 0.4).sin()]).collect();
    let rates: Vec<[f64; 2]> = (1..60).map(|i| [10f64.powf(f64::from(i) / 20.0 - 2.0), 1e-3 * f64::from(i * i)]).collect();
    let curve = NmseCurve { name: "fklms".into(), points: wave.clone(), average_db: Some(-8.0) };
    let logarithmic = lines("", Axis::new("rate", "").log(), Axis::new("error", "").log(), &[Series::new("theory", rates.clone())]);
    let scatter = Figure::new("").with(Panel::new(Axis::new("x", ""), Axis::new("y", "")).with(Mark::dots("dots", wave.clone())));
    for (figure, name, given) in
        [(nmse_over_time("", samples(), &[curve]), "fklms", &wave), (logarithmic, "theory", &rates), (scatter, "dots", &wave)]
    {
        assert_eq!(figure.panels[0].points(name).unwrap(), given.as_slice());
        let drawn = read_back(&figure.svg(), 0, name);
        assert_eq!(drawn.len(), given.len(), "{name}");
        for (drawn, given) in drawn.iter().zip(given) {
            // Coordinates are rounded to hundredths of a px, of which there are some hundreds.
            let log = name == "theory";
            let near = |a: f64, b: f64, span: f64| if log { (a / b).ln().abs() < 3e-4 } else { (a - b).abs() < 1e-4 * span };
            assert!(near(drawn[0], given[0], 6000.0) && near(drawn[1], given[1], 6.0), "{name}: {drawn:?} {given:?}");
        }
    }
}

#[test]
fn each_kind_holds_the_numbers_that_it_was_given() {
    let h = |re, im| Complex64::new(re, im);
    let taps =
        Taps { name: "a".into(), times: vec![0.0, 1.0], taps: vec![vec![h(3.0, 4.0), h(0.0, -2.0)], vec![h(-1.0, 0.0), h(0.0, 0.0)]] };
    for (part, first, second) in [
        (Part::Magnitude, [[0.0, 5.0], [1.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]]),
        (Part::Real, [[0.0, 3.0], [1.0, 0.0]], [[0.0, -1.0], [1.0, 0.0]]),
        (Part::Phase, [[0.0, (4f64 / 3.0).atan().to_degrees()], [1.0, -90.0]], [[0.0, 180.0], [1.0, 0.0]]),
    ] {
        let figure = taps_over_time("", samples(), std::slice::from_ref(&taps), part);
        assert_eq!((figure.panels[0].points("tap 0").unwrap(), figure.panels[0].points("tap 1").unwrap()), (&first[..], &second[..]));
    }

    // A phase that runs over the edge leaves a gap, and a long impulse response is a map in dB.
    let turning = Taps {
        name: String::new(),
        times: vec![0.0, 1.0],
        taps: vec![vec![Complex64::from_polar(1.0, 3.0), Complex64::from_polar(1.0, -3.0)]],
    };
    let figure = taps_over_time("", samples(), &[turning], Part::Phase);
    assert!(figure.panels[0].points("tap 0").unwrap()[1][1].is_nan());
    let long =
        Taps { name: String::new(), times: vec![0.0, 1.0], taps: (0..10).map(|l| vec![h(f64::from(l), 0.0), h(1.0, 0.0)]).collect() };
    let figure = taps_over_time("", samples(), &[long], Part::Magnitude);
    let Mark::Heat { grid, .. } = &figure.panels[0].marks[0] else { panic!("a map") };
    assert!(grid.columns == 2 && grid.rows() == 10 && (grid.values[4] - 20.0 * 2f64.log10()).abs() < 1e-12);

    let measured = AmplifierCurve { name: "measured".into(), input: vec![0.5, 1.0], output: vec![0.4, 0.7], phase_deg: vec![1.0, 4.0] };
    let learned = AmplifierCurve { name: "qklms".into(), input: vec![1.0, 0.0], output: vec![0.8, 0.0], phase_deg: vec![5.0, 0.0] };
    let figure = am_am_pm("", &measured, &[learned]);
    assert_eq!(figure.panels[0].points("measured").unwrap(), [[0.5, 0.4], [1.0, 0.7]]);
    assert_eq!(figure.panels[1].points("measured").unwrap(), [[0.5, 1.0], [1.0, 4.0]]);
    assert_eq!(figure.panels[0].points("qklms").unwrap(), [[0.0, 0.0], [1.0, 0.8]]);

    let figure = weights("", &[Weights { name: "norma".into(), ages: vec![2.0, 1.0, f64::NAN], sizes: vec![1.0, 3.0, 9.0] }]);
    assert_eq!(figure.panels[0].points("norma").unwrap(), [[2.0, 1.0], [1.0, 3.0]]);
    assert_eq!(figure.panels[1].points("norma").unwrap(), [[1.0, 75.0], [2.0, 100.0]]);

    let histogram = Histogram::of("tx", &[0.0, 1.0, 1.0, 4.0, f64::NAN], 4);
    assert_eq!((histogram.edges, histogram.density), (vec![0.0, 1.0, 2.0, 3.0, 4.0], vec![0.25, 0.5, 0.0, 0.25]));

    let chart = bars("", Axis::new("NMSE", "dB"), &[Bar { name: "rls".into(), value: -4.0, error: Some(0.5), reference: None }]);
    assert!(chart.panels[0].marks.iter().any(|m| matches!(m, Mark::Boxes { boxes, .. } if boxes[0][..2] == [0.0, -4.0])));
    assert!(
        chart.panels[0].marks.iter().any(|m| matches!(m, Mark::Whiskers { intervals, .. } if intervals == &[[[-4.5, 0.0], [-3.5, 0.0]]]))
    );
    assert!(chart.svg().contains("rls  −4.00 ± 0.50"));

    let search = [Candidate { values: vec![0.1, 2.0], score: -3.0 }, Candidate { values: vec![0.2, 1.0], score: -7.0 }];
    let map = landscape("", &[Axis::new("η", "").log(), Axis::new("σ", "").log()], Axis::new("NMSE", "dB"), &search);
    assert_eq!(map.panels[0].title, "best −7.00 dB at η 0.2 and σ 1");
    assert!(
        map.panels[0].marks.iter().any(|m| matches!(m, Mark::Scores { points, .. } if points == &[[0.1, 2.0, -3.0], [0.2, 1.0, -7.0]]))
    );
}

/// The pixels of the only image in a picture, as rows of colours.
fn image(svg: &str) -> (Vec<f64>, usize) {
    let tag = svg.split("<image ").nth(1).unwrap();
    let number = |key: &str| tag.split(&format!("{key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap();
    (["x", "y", "width", "height"].map(number).to_vec(), tag.len())
}

#[test]
fn a_map_is_cropped_to_the_axes_and_not_squeezed_into_them() {
    let grid = Grid::of([0.5, 99.5], [0.5, 9.5], 100, 10, |x, _| x);
    let panel = |range: [f64; 2]| {
        let x = Axis::new("x", "").range(range[0], range[1]);
        Figure::new("").with(Panel::new(x, Axis::new("y", "")).with(Mark::Heat { grid: grid.clone(), level: Axis::new("z", "") })).svg()
    };
    let frame = |svg: &str| -> Vec<f64> {
        svg.split("data-frame=\"").nth(1).unwrap().split('"').next().unwrap().split(' ').map(|v| v.parse().unwrap()).collect()
    };
    // A part of the grid fills the frame; a grid smaller than the axes keeps its size.
    for (range, left, width) in [([20.0, 40.0], 0.0, 1.0), ([0.0, 100.0], 0.0, 1.0), ([-100.0, 100.0], 0.5, 0.5), ([50.0, 150.0], 0.0, 0.5)]
    {
        let svg = panel(range);
        let (frame, (place, _)) = (frame(&svg), image(&svg));
        assert!(
            (place[0] - frame[0] - left * frame[2]).abs() < 0.02 && (place[2] - width * frame[2]).abs() < 0.02,
            "{range:?}: {place:?} in {frame:?}"
        );
    }
    assert!(!panel([200.0, 300.0]).split("class=\"panel\"").nth(1).unwrap().split("</g>").next().unwrap().contains("<image"));
}

#[test]
fn rows_with_the_same_legend_share_it_and_captions_are_whole() {
    let panel =
        |names: &[&str]| names.iter().fold(Panel::new(samples(), samples()), |p, n| p.with(Mark::line(*n, vec![[0.0, 0.0], [1.0, 1.0]])));
    let count = |svg: &str, name: &str| svg.matches(&format!(">{name}</text>")).count();
    let caption = "Words that go on for so long that one line of a page, which is eight hundred px wide, cannot hold all of them, so that a second line must.";
    let mut wide = panel(&["nlms"]);
    wide.span = 2;
    let two = || panel(&["fklms", "qklms"]);
    let svg = Figure::new("").columns(2).with(wide).with(two()).with(two()).with(two()).with(panel(&["rls"])).captioned(caption).svg();
    // The first two are a row, the third stands beside another.
    assert_eq!((count(&svg, "nlms"), count(&svg, "fklms"), count(&svg, "rls")), (1, 2, 1));
    assert!(caption.split(' ').all(|word| svg.contains(word)) && !svg.contains(caption));
}

#[test]
fn legends_carry_the_averages_and_filters_their_colours_in_every_picture() {
    let curve = |name: &str, db| NmseCurve { name: name.into(), points: vec![[0.0, 0.0], [1.0, db]], average_db: Some(db) };
    let figure = nmse_over_time("t", samples(), &[curve("krls-t", -10.76), curve("norma", f64::NAN)]);
    let svg = figure.svg();
    assert!(svg.contains("krls-t  −10.8 dB") && svg.contains("norma  diverged"));
    let colour = style_of("krls-t").colour.hex();
    let chart = bars("", Axis::new("NMSE", "dB"), &[Bar { name: "KRLST".into(), value: -4.0, error: None, reference: None }]).svg();
    assert!(svg.contains(&colour) && chart.contains(&colour));
}

#[test]
fn no_numbers_break_a_picture() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let odd: [(&str, Vec<[f64; 2]>); 10] = [
        ("empty", vec![]),
        ("one point", vec![[3.0, -7.0]]),
        ("nothing finite", vec![[nan, 1.0], [1.0, inf], [2.0, -inf]]),
        ("gaps", vec![[0.0, 1.0], [1.0, nan], [2.0, 3.0], [3.0, 2.0], [inf, 1.0], [5.0, 1.0]]),
        ("constant", (0..50).map(|i| [f64::from(i), 4.2]).collect()),
        ("zeros", vec![[0.0, 0.0]; 5]),
        ("huge", vec![[-1e300, 1e300], [1e300, -1e300], [f64::MAX, f64::MIN]]),
        ("tiny", vec![[1e-300, 1e-310], [2e-300, 3e-310]]),
        ("negative", vec![[-1.0, -1.0], [-2.0, -3.0]]),
        ("one outlier", vec![[0.0, 1.0], [1.0, 2.0], [2.0, 1e18]]),
    ];
    for (what, points) in &odd {
        for log in [false, true] {
            let axis = |label: &str| Axis { log, ..Axis::new(label, "") };
            let three = || points.iter().map(|p| [p[0], p[1], p[0]]).collect::<Vec<_>>();
            let grid = Grid { x: [0.0, 1.0], y: [0.0, 1.0], columns: 2, values: points.iter().flatten().copied().collect() };
            let mut panel =
                Panel::new(axis("x"), axis("y")).with(Mark::line("line", points.clone())).with(Mark::dots("dots", points.clone()));
            let style = style_of("x");
            panel.marks.push(Mark::Band { name: "band".into(), points: three(), style });
            panel.marks.push(Mark::Boxes { name: "boxes".into(), boxes: points.iter().map(|p| [p[0], p[1], p[1], p[0]]).collect(), style });
            panel.marks.push(Mark::Whiskers { intervals: points.windows(2).map(|p| [p[0], p[1]]).collect(), style });
            panel.marks.push(Mark::Scores { points: three(), level: axis("level"), size: 5.0 });
            let heat = Panel::new(axis("x"), axis("y")).with(Mark::Heat { grid: grid.clone(), level: axis("z") });
            let contours = Panel::new(axis("x"), axis("y")).with(Mark::Contours { name: "c".into(), grid, levels: vec![(0.5, style)] });
            let inset = Panel::new(axis(""), axis("")).with(Mark::line("", points.clone()));
            let panel = panel.with_insets(0.3, vec![(inset, points.first().copied())]);
            let mut equal = Panel::new(axis("x"), axis("y")).with(Mark::dots("", points.clone()));
            equal.equal = true;
            let figure = Figure::new(*what).columns(2).with(panel).with(heat).with(contours).with(equal);
            assert!(only_finite(&figure.svg()), "{what}, log {log}: {}", figure.svg());
            assert!(figure.png().is_ok(), "{what}, log {log}");
        }
    }
    for (columns, width) in [(0, 800.0), (7, 100.0), (1, nan), (1, -5.0)] {
        let figure = Figure {
            columns,
            width,
            ..Figure::new("a title that is far too long for so narrow a page").with(Panel::new(samples(), samples()))
        };
        assert!(only_finite(&figure.svg()) && figure.png().is_ok());
    }
    assert!(Figure::new("").png().is_ok());
    assert!(only_finite(&constellations("", &[Constellation { title: String::new(), symbols: vec![] }], &[]).svg()));
    assert!(only_finite(&landscape("", &[], Axis::default(), &[]).svg()));
    assert!(only_finite(&bars("", Axis::default(), &[]).svg()));
}

#[test]
fn a_picture_of_a_million_samples_stays_small_and_shows_the_peak() {
    let noise = &mut Noise(7);
    let mut values: Vec<f64> = (0..1_000_000).map(|_| noise.normal()).collect();
    values[654_321] = 40.0;
    let line = lines("", samples(), Axis::new("amplitude", ""), &[Series::evenly("rx", 0.0, 1.0, &values)]);
    let svg = line.svg();
    assert!(svg.len() < 60_000, "{}", svg.len());
    assert!(read_back(&svg, 0, "rx").iter().any(|p| (p[1] - 40.0).abs() < 0.05 && (p[0] - 654_321.0).abs() < 100.0));
    let symbols: Vec<Complex64> = (0..1_000_000).map(|_| noise.complex()).collect();
    let svg = constellations("", &[Constellation { title: String::new(), symbols }], &[]).svg();
    assert!(svg.len() < 400_000, "{}", svg.len());
}

#[test]
fn save_writes_what_files_announces_and_leaves_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let figure = Figure::new("x").with(Panel::new(samples(), samples()));
    for (name, expected) in [
        ("both", vec!["both.svg", "both.png"]),
        ("run.v2", vec!["run.v2.svg", "run.v2.png"]),
        ("one.svg", vec!["one.svg"]),
        ("one.PNG", vec!["one.PNG"]),
    ] {
        let path = folder.path().join(name);
        let expected: Vec<_> = expected.into_iter().map(|f| folder.path().join(f)).collect();
        assert_eq!(files(&path), expected);
        assert_eq!(figure.save(&path).unwrap(), expected);
        // Once more: it replaces.
        assert_eq!(figure.save(&path).unwrap(), expected);
        assert!(expected.iter().all(|f| f.exists()));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 6);
    let error = figure.save(folder.path().join("missing/x.svg")).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn several_pictures_fit_into_one_page() {
    let page: String = gallery().iter().map(|(_, figure)| figure.svg()).collect();
    assert!(!page.contains(" id=\"") && !page.contains("<?xml"));
}
