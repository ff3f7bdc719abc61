//! The flowgraphs as a user has them who copies their folder: on what the library shows, and nothing else.
//!
//! At the root of this crate are the public modules of the library, so that `crate::` in a flowgraph means here what `kaflow::` means in a user's program. One that
//! needs a private item does not compile.
#![cfg(feature = "blocks")]

use kaflow::{Error, Result, blocks, channel, dpd, filter, iq, metrics, ofdm};

#[path = "../flowgraphs/mod.rs"]
#[allow(dead_code, reason = "a user would call more of it")]
mod flowgraphs;

use channel::{Scenario, TestBed};
use filter::{Filter as _, Nlms, Tracker};

fn nlms() -> Box<dyn Tracker<f32>> {
    Nlms::new(4, 0.5, 1e-6).unwrap().on_stream()
}

#[test]
fn a_copy_does_what_the_library_does() {
    let scenario = Scenario { samples: 20_000, ..Scenario::preset("a").unwrap() };
    let bed = || Box::new(TestBed::new(&scenario).unwrap());
    let (never, copied) = (false.into(), flowgraphs::track::Filter::new("nlms", nlms()));
    let plan = flowgraphs::track::Plan { filters: vec![vec![copied]], ..Default::default() };
    let copy = flowgraphs::track::run(flowgraphs::track::Source::Bed(bed()), plan, &flowgraphs::track::Watch::new(&never), |_| ()).unwrap();

    use kaflow::flowgraphs::track::{Filter, Plan, Source, Watch, run};
    let plan = Plan { filters: vec![vec![Filter::new("nlms", nlms())]], ..Plan::default() };
    let original = run(Source::Bed(bed()), plan, &Watch::new(&never), |_| ()).unwrap();
    assert_eq!(copy.filters[0].1.series, original.filters[0].1.series);
    assert_eq!(copy.filters[0].1.series.samples(), 20_000);
}
