use super::*;
use crate::channel::{Scenario, TestBed};
use crate::filter::registry::{Values, recipe};
use crate::plot::Mark;

fn data() -> Data {
    let scenario = Scenario { samples: 600, ..Scenario::preset("e").unwrap() };
    let mut chunk = TestBed::run(&scenario).unwrap();
    Data::new(chunk.tx.swap_remove(0), chunk.rx.swap_remove(0), 3, 150).unwrap()
}

#[test]
fn the_best_is_the_best_of_all_and_its_score_is_that_of_a_whole_run() {
    let data = data();
    let spaces = ["klms", "fklms"].map(|name| Space::new(recipe(name).unwrap(), &Values::new(), Some(50), &data).unwrap());
    for found in search(&spaces, &data, Plan { candidates: 60, seed: 3 }).unwrap() {
        assert_eq!(found.tried.len(), 60);
        let best = found.best();
        assert!(best.score.complete && best.score.db < found.untuned().score.db);
        assert_eq!(score(&best.settings, &data, None).unwrap().db, best.score.db);
        let mut given_up = 0;
        for tried in &found.tried {
            let whole = score(&tried.settings, &data, None).unwrap().db;
            assert!(whole >= best.score.db && tried.score.db >= best.score.db, "{whole} {}", tried.score.db);
            given_up += usize::from(!tried.score.complete);
        }
        assert!(given_up > 10, "{given_up} of 60 were hopeless");
    }
}

#[test]
fn the_landscape_shows_every_candidate_at_its_score() {
    let data = data();
    let space = Space::new(
        recipe("klms").unwrap(),
        &Values::from([("kernel".into(), crate::filter::registry::Value::Name("gaussian".into()))]),
        Some(50),
        &data,
    )
    .unwrap();
    let found = search(std::slice::from_ref(&space), &data, Plan { candidates: 20, seed: 1 }).unwrap().remove(0);
    let picture = found.picture(&space);
    let expected: Vec<[f64; 3]> =
        found.tried.iter().map(|t| [t.settings.number("sigma").unwrap(), t.settings.number("eta").unwrap(), t.score.db]).collect();
    assert!(picture.panels[0].marks.iter().any(|m| matches!(m, Mark::Scores { points, .. } if *points == expected)));
    let best = format!("best {} dB", crate::plot::axis::number(found.best().score.db, 2));
    assert!(picture.panels[0].title.starts_with(&best), "{}", picture.panels[0].title);
}
