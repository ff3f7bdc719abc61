//! `kaflow fit` as a user runs it.
#![cfg(feature = "cli")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use common::{Table, channel};
use kaflow::Complex;
use kaflow::filter::*;
use kaflow::kernel::{Equivariant, Gaussian, Linear, Polynomial, Sum};
use kaflow::observation::{Gain, Multinomial};

fn kaflow(args: &[&str]) -> Output {
    Command::cargo_bin("kaflow").unwrap().args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

type Inputs = Vec<Vec<Complex<f64>>>;

/// A complex table of two taps, as exact decimals.
fn complex_table(folder: &Path) -> (String, Inputs, Vec<Complex<f64>>) {
    let (tx, y) = channel(21, 250);
    let x: Vec<Vec<_>> = (0..250).map(|i| vec![tx[i], if i > 0 { tx[i - 1] } else { Complex::new(0.0, 0.0) }]).collect();
    let mut csv = "x0_re,x0_im,x1_re,x1_im,label,y_re,y_im\n".to_owned();
    for (x, y) in x.iter().zip(&y) {
        csv += &format!("{:?},{:?},{:?},{:?},hello,{:?},{:?}\n", x[0].re, x[0].im, x[1].re, x[1].im, y.re, y.im);
    }
    let path = folder.join("complex.csv");
    fs::write(&path, csv).unwrap();
    (path.to_str().unwrap().into(), x, y)
}

#[test]
fn predictions_are_those_of_the_library_to_the_last_digit() {
    let folder = tempfile::tempdir().unwrap();
    let (path, x, y) = complex_table(folder.path());
    let gain = Gain::Eta(0.3);
    let evict = Evict { budget: Some(40), floor: None };
    let power = x.iter().fold(0.0, |sum, x| sum + x.iter().map(|z| z.norm_sqr()).sum::<f64>());
    let rms = (power / x.len() as f64).sqrt() / 2f64.sqrt();
    let sum = || Sum::new(vec![(1.0, Box::new(Gaussian::new(0.7).unwrap()) as _), (1.0, Box::new(Linear) as _)]).unwrap();
    let cases: Vec<(&str, Box<dyn Filter<f64>>)> = vec![
        ("--filter lms --eta 0.3", Box::new(Lms::new(2, gain).unwrap())),
        ("--filter klms --eta 0.3 --sigma 0.7", Box::new(klms(Gaussian::new(0.7).unwrap(), gain, Evict::default(), 2).unwrap())),
        (
            "--filter fklms --eta 0.3 --sigma 0.7 --lambda 0.98 --budget 40",
            Box::new(fklms(Gaussian::new(0.7).unwrap(), gain, 0.98, evict, 2).unwrap()),
        ),
        (
            "--filter norma --diffusion-ratio 2 --sigma 0.7 --ridge 0.1 --floor 0.01",
            Box::new(
                norma(Gaussian::new(0.7).unwrap(), Gain::DiffusionRatio(2.0), 0.1, Evict { budget: None, floor: Some(0.01) }, 2).unwrap(),
            ),
        ),
        (
            "--filter qklms --eta 0.3 --sigma 0.7 --epsilon 0.4",
            Box::new(qklms(Gaussian::new(0.7).unwrap(), gain, 0.4, Evict::default(), 2).unwrap()),
        ),
        (
            "--filter klms --diffusion-ratio 0.5 --kernel equivariant --sigma 0.7",
            Box::new(klms(Equivariant::new(0.7).unwrap(), Gain::DiffusionRatio(0.5), Evict::default(), 2).unwrap()),
        ),
        (
            "--filter klms --diffusion-ratio 0.5 --kernel polynomial --degree 2",
            Box::new(klms(Polynomial::new(2, 1.0).unwrap(), Gain::DiffusionRatio(0.5), Evict::default(), 2).unwrap()),
        ),
        (
            "--filter klms --diffusion-ratio 0.5 --kernel gaussian+linear --sigma 0.7",
            Box::new(klms(sum(), Gain::DiffusionRatio(0.5), Evict::default(), 2).unwrap()),
        ),
        ("--filter nlms --mu 0.4 --regularization 0.01", Box::new(Nlms::new(2, 0.4, 0.01).unwrap())),
        ("--filter rls --lambda 0.97 --regularization 0.1", Box::new(Rls::new(2, 0.97, 0.1).unwrap())),
        ("--filter kalman --lambda 0.99 --process-noise 0.01 --noise 0.1", Box::new(Kalman::new(2, 0.99, 0.01, 0.1).unwrap())),
        ("--filter mp-rls --order 3 --lambda 0.99 --regularization 0.1", Box::new(MemoryPolynomial::new(2, 2, rms, 0.99, 0.1).unwrap())),
        (
            "--filter krlst --sigma 0.7 --lambda 0.99 --noise 0.02 --budget 15",
            Box::new(KrlsT::new(Gaussian::new(0.7).unwrap(), 0.99, 0.02, 15, 2).unwrap()),
        ),
    ];
    for (options, mut filter) in cases {
        let mut args = vec!["fit", &path];
        args.extend(options.split(' '));
        let out = kaflow(&args);
        assert!(out.status.success(), "{options}: {}", text(&out.stderr));
        let table = Table::parse(&text(&out.stdout));
        let (p, e) = (table.complex("prediction"), table.complex("error"));
        let variance = table.column("variance");
        assert_eq!(p.len(), x.len());
        for i in 0..x.len() {
            assert_eq!(p[i], filter.adapt(&x[i], y[i]), "{options}, row {i}");
            assert_eq!(e[i], y[i] - p[i]);
            assert_eq!(variance.as_ref().map(|v| v[i]), filter.variance(), "{options}, row {i}");
        }
        let summary = text(&out.stderr);
        assert!(
            summary.contains("NMSE") && summary.contains("250 samples") && summary.contains(&format!("{} ", filter.size())),
            "{summary}"
        );
    }
}

#[test]
fn real_counts_bits_and_classes_have_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let rows: String = (0..60).map(|i| format!("{},{}\n", f64::from(i % 7) / 7.0, i % 3)).collect();
    fs::write(&path, format!("x0,y\n{rows}")).unwrap();
    let path = path.to_str().unwrap();

    let out = kaflow(&["fit", path, "--filter", "poisson", "--process-noise", "0.2", "--lambda", "0.99", "--offset", "0.5"]);
    let table = Table::parse(&text(&out.stdout));
    assert_eq!(table.names, ["prediction", "error"]);
    assert_eq!(table.rows[0][0], 0.5f64.exp());
    assert!(text(&out.stderr).contains("log-loss"));

    let out = kaflow(&["fit", path, "--filter", "multinomial", "--sigma", "0.3"]);
    let table = Table::parse(&text(&out.stdout));
    assert_eq!(table.names, ["p0", "p1", "p2", "error"]);
    let mut filter =
        bayesian_klms(Gaussian::new(0.3).unwrap(), Multinomial::new(6.0, vec![0.0; 3]).unwrap(), 1.0, Evict::default(), 1).unwrap();
    for (i, row) in table.rows.iter().enumerate() {
        assert_eq!(filter.adapt(&[Complex::new((i % 7) as f64 / 7.0, 0.0)], i % 3), &row[..3]);
        assert_eq!(row[3], 1.0 - row[i % 3]);
    }
    assert!(text(&out.stderr).contains("accuracy"));

    let out = kaflow(&["fit", path, "--filter", "bernoulli"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("row 3, column y: 2 is not 0 or 1"), "{}", text(&out.stderr));
}

#[test]
fn wrong_input_gives_one_line_that_names_the_culprit_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good.csv", "x0,y\n1,2\n3,4\n");
    let kept = file("kept.csv", "precious");
    let cases: &[(&[&str], &str)] = &[
        (&["fit", "no/such.csv"], "no/such.csv: No such file"),
        (&["fit", &good, "--filter", "fklm"], "unknown filter 'fklm', did you mean 'fklms'?"),
        (&["fit", &good, "--filter", "nlms", "--sigma", "1"], "nlms has no parameter 'sigma'; it has mu, regularization"),
        (&["fit", &good, "--filter", "klms", "--classes", "3"], "klms has no parameter 'classes'"),
        (&["fit", &good, "--kernel", "gausian"], "unknown kernel 'gausian', did you mean 'gaussian'?"),
        (&["fit", &good, "--budget", "0"], "budget must be at least 1, got 0"),
        (&["fit", &good, "--budget", "2.5"], "budget must be a whole number, at least 1, got 2.5"),
        (&["fit", &good, "--lambda", "1.5"], "lambda must be above 0 and at most 1, got 1.5"),
        (&["fit", &good, "--sigma", "-1"], "sigma must be positive"),
        (&["fit", &good, "--eta", "0.5", "--diffusion-ratio", "1"], "diffusion-ratio must be left out where eta is given"),
        (&["fit", &good, "--sigma", "wide"], "--sigma must be a number, got 'wide'"),
        (&["fit", &good, "--output", &kept], "exists already; name another or add --force"),
        (&["fit", &file("a.csv", "x0,y\n1,2\n3\n")], "line 3: 1 fields, the header has 2"),
        (&["fit", &file("b.csv", "x0,x1,y\n1,2,3\n1,two,3\n")], "line 3, column x1: 'two' is not a number"),
        (&["fit", &file("c.csv", "x0,y\n1,\n")], "line 2, column y: is empty; write nan"),
        (&["fit", &file("d.csv", "a,y\n1,2\n")], "no input column x0 or x0_re,x0_im; the columns are a,y"),
        (&["fit", &file("e.csv", "x0,z\n1,2\n")], "no target column y or y_re,y_im"),
        (&["fit", &file("f.csv", "x0_re,y\n1,2\n")], "column x0_im is missing"),
        (&["fit", &file("g.csv", "x0,y\n")], "there are no rows after the header"),
        (&["fit", &file("h.csv", "")], "no input column x0"),
        (&["fit", &good, "--filter", "poisson", "--offset", "1,2"], "offset must be a number, got 1,2"),
        (&["fit", &file("i.csv", "x0,y\n1,-2\n"), "--filter", "poisson"], "row 1, column y: -2 is not a count"),
        (&["fit", &good, "--sigm", "1"], "--sigma"),
    ];
    for (args, message) in cases {
        let out = kaflow(args);
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(message), "{args:?} says {stderr}");
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    }
    assert_eq!(fs::read_to_string(kept).unwrap(), "precious");
}

#[test]
fn missing_values_are_skipped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gaps.csv");
    fs::write(&path, "x0,y\n1,2\nnan,3\n2,inf\n1,2\n").unwrap();
    let result = folder.path().join("result.csv");
    let out = kaflow(&["fit", path.to_str().unwrap(), "--filter", "klms", "--sigma", "1", "--output", result.to_str().unwrap()]);
    assert!(out.status.success() && out.stdout.is_empty());
    assert!(text(&out.stderr).contains("2 skipped"), "{}", text(&out.stderr));
    let table = Table::read(&result);
    assert_eq!(table.column("prediction").unwrap(), [0.0, 0.0, (-0.5f64).exp(), 1.0]);
}

#[test]
fn a_table_can_come_from_standard_input() {
    let out =
        Command::cargo_bin("kaflow").unwrap().args(["fit", "-", "--filter", "nlms"]).write_stdin("x0,y\n1,2\n1,2\n").output().unwrap();
    assert_eq!(text(&out.stdout).lines().count(), 3);
}
