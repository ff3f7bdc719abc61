//! What every filter in the list must have.

use super::*;
use crate::filter::{Adaptive, Guard, Portrait};

fn given(recipe: &Recipe) -> Values {
    recipe.grows().then(|| ("budget".into(), Value::Number(30.0))).into_iter().collect()
}

fn streams<T: Real>() -> (Vec<num_complex::Complex<T>>, Vec<num_complex::Complex<T>>) {
    let at = |r: f64, phase: f64| num_complex::Complex::new(T::of(r * phase.cos()), T::of(r * phase.sin()));
    let r = |n: u32| (f64::from(n) * 0.618).fract() * 1.5;
    let tx = (0..600).map(|n| at(r(n), 2.4 * f64::from(n) * f64::from(n)));
    let rx = (0..600).map(|n| at(r(n) / (1.0 + r(n).powi(2)), 2.4 * f64::from(n) * f64::from(n) + 0.7));
    (tx.collect(), rx.collect())
}

#[test]
fn every_filter_says_what_it_is_and_what_its_parameters_do() {
    for (i, recipe) in RECIPES.iter().enumerate() {
        let name = recipe.name;
        assert!(recipe.about.len() > 10 && !recipe.about.ends_with('.'), "{name}: one line of help");
        assert!(recipe.reference.len() >= 6, "{name}: a reference");
        for other in std::iter::once(&name).chain(recipe.aliases) {
            assert!(RECIPES[..i].iter().all(|r| !r.is_called(other)), "{other} means two filters");
            assert_eq!(super::recipe(other).unwrap().name, name);
        }
        assert!(RECIPES[..i].iter().all(|r| r.look != recipe.look), "{name} looks like another filter");
        for parameter in recipe.parameters {
            let known = parameters().into_iter().find(|p| p.name == parameter.name).unwrap();
            assert!(parameter.about.len() > 10, "{name}: help for {}", parameter.name);
            assert_eq!((parameter.about, parameter.names), (known.about, known.names), "{name}: {} means one thing", parameter.name);
            match parameter.preset {
                Preset::Named(preset) => assert!(parameter.names.contains(&preset), "{name}: {}", parameter.name),
                Preset::Is(_) | Preset::Spread(_) | Preset::Rms(_) | Preset::Power(_) | Preset::PerPower(_) => {
                    assert!(parameter.names.is_empty(), "{name}: {}", parameter.name)
                }
                Preset::Off | Preset::Unlimited => {}
            }
        }
    }
}

#[test]
fn every_number_is_searched_or_says_what_a_filter_is_or_costs() {
    // A parameter that is not here and has no range would never be tuned.
    let fixed = ["degree", "budget", "floor", "workers", "offset", "still-taps", "evidence"];
    for recipe in RECIPES {
        let settings = recipe.settle(&given(recipe), 2.0).unwrap();
        for parameter in recipe.parameters.iter().filter(|p| p.names.is_empty()) {
            let what = format!("{}: {}", recipe.name, parameter.name);
            match parameter.search {
                Some(search) => {
                    let (low, high) = search.ends(&settings, 4, 2.0, 0.5).unwrap();
                    assert!(low > 0.0 && high > 2.0 * low && high.is_finite(), "{what}: {low} to {high}");
                    assert!(search.spacing != Spacing::Complement || high < 1.0, "{what}");
                }
                None => assert!(fixed.contains(&parameter.name), "{what} has no range of search"),
            }
        }
    }
}

#[test]
fn every_filter_builds_from_its_defaults_and_is_set_saved_restored_and_portrayed() {
    fn check<T: Real>(recipe: &'static Recipe) {
        let (name, settings) = (recipe.name, recipe.settle(&given(recipe), 1.7).unwrap());
        let build = || Guard::new(tracker::<T>(&settings, 4).unwrap());
        let (tx, rx) = streams::<T>();
        let mut first = build();
        assert!(first.tracker().taps() >= 4, "{name}");
        let run = |tracker: &mut Guard<T, Box<dyn Tracker<T>>>, span: std::ops::Range<usize>| {
            let mut p = tx[span.clone()].to_vec();
            tracker.track(&tx[span.clone()], &rx[span], &mut p, None);
            p
        };
        run(&mut first, 0..300);
        assert_ne!(first.portrait(), Portrait::default(), "{name} shows nothing of what it learned");
        let saved = first.save().unwrap();
        let mut second = build();
        run(&mut second, 300..350);
        second.restore(&saved).unwrap();
        assert_eq!((second.size(), second.portrait()), (first.size(), first.portrait()), "{name}");
        assert!(run(&mut second, 300..600) == run(&mut first, 300..600), "{name} goes on as if it had never stopped");
        let before = second.save().unwrap();
        assert!(second.restore(&saved[..saved.len() - 3]).is_err() && second.save().unwrap() == before, "{name}: refused and unchanged");
        second.reset();
        assert!(run(&mut second, 0..300) == run(&mut build(), 0..300), "{name}: reset forgets everything");
        let Err(Error::NotApplicable { known, .. }) = second.set("no such parameter", 1.0) else { panic!("{name} takes any parameter") };
        let settable: Vec<_> = known.iter().filter(|k| settings.optional(k).is_ok_and(|v| v.is_some())).collect();
        assert!(!settable.is_empty(), "{name}: none of {known:?} is a parameter of the recipe");
        for parameter in settable {
            second.set(parameter, settings.number(parameter).unwrap()).unwrap();
            assert!(second.set(parameter, f64::NAN).is_err(), "{name}: {parameter} = NaN");
        }
    }
    for recipe in RECIPES {
        let settings = recipe.settle(&Values::new(), 2.0).unwrap();
        match recipe.make {
            Make::Filter(..) => {
                let (single, double) = (filter::<f32>(&settings, 5).unwrap(), filter::<f64>(&settings, 5).unwrap());
                assert_eq!((single.taps(), double.taps()), (5, 5), "{}", recipe.name);
            }
            Make::Tracker(..) => assert!(filter::<f32>(&settings, 5).is_err()),
            Make::Counts(build) => drop(build(&settings, 4).unwrap()),
            Make::Bits(build) => drop(build(&settings, 4).unwrap()),
            Make::Classes(build) => drop(build(&settings, 3, 4).unwrap()),
        }
        match recipe.task() {
            Task::Regression => {
                check::<f32>(recipe);
                check::<f64>(recipe);
            }
            Task::Stream => {
                check::<f32>(recipe);
                assert!(tracker::<f64>(&settings, 4).err().unwrap().to_string().contains("f32"));
            }
            _ => assert!(tracker::<f32>(&settings, 4).is_err()),
        }
    }
}

#[test]
fn a_parameter_that_the_filter_does_not_have_is_refused_by_name() {
    let given = Values::from([("ridge".into(), Value::Number(1.0))]);
    let error = recipe("fklms").unwrap().settle(&given, 1.0).err().unwrap().to_string();
    assert!(error.contains("fklms has no parameter 'ridge'") && error.contains("lambda"), "{error}");
    assert!(recipe("fklm").err().unwrap().to_string().contains("did you mean 'fklms'"));
}

#[test]
fn kernels_that_are_not_normalised_default_to_the_diffusion_ratio() {
    let settle = |name: &str, given: &[(&str, Value)]| {
        let given = given.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        recipe(name).unwrap().settle(&given, 1.0).unwrap().values().clone()
    };
    let linear = settle("klms", &[("kernel", Value::Name("linear".into()))]);
    assert_eq!(linear.get("diffusion-ratio"), Some(&Value::Number(1.0)));
    assert!(!linear.contains_key("eta") && !linear.contains_key("sigma"));
    assert_eq!(settle("lms", &[]), Values::from([("diffusion-ratio".into(), Value::Number(1.0))]));
    let eta = ("eta", Value::Number(0.1));
    assert_eq!(settle("lms", std::slice::from_ref(&eta)), Values::from([("eta".into(), Value::Number(0.1))]));
    let both = Values::from([(eta.0.into(), eta.1), ("diffusion-ratio".into(), Value::Number(1.0))]);
    assert!(recipe("klms").unwrap().settle(&both, 1.0).is_err());
}
