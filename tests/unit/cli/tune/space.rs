use super::*;
use crate::Complex32;
use crate::filter::registry::RECIPES;

fn data(scale: f32) -> Data {
    let tx: Vec<Complex32> = (0..100u16).map(|i| Complex32::from_polar(scale, f32::from(i))).collect();
    Data::new(tx.clone(), tx, 4, 10).unwrap()
}

#[test]
fn ranges_follow_the_scale_of_the_data_and_hold_the_defaults() {
    for recipe in RECIPES.iter().filter(|r| r.tracks()) {
        for scale in [1e-3, 1.0, 1e3] {
            let data = data(scale);
            let space = Space::new(recipe, &Values::new(), Some(500), &data).unwrap();
            for corner in [0.0, 0.5, 1.0] {
                let point = vec![corner; space.dimensions.len()];
                let settings = space.at(&point).unwrap();
                crate::filter::registry::tracker::<f32>(&settings, 4).unwrap_or_else(|e| panic!("{} at {corner}: {e}", recipe.name));
                for (d, u) in space.dimensions.iter().zip(space.point(&settings)) {
                    let near = if d.spacing == Spacing::Odd { 0.2 } else { 0.01 };
                    assert!((u - corner).abs() < near, "{} {}: {u} for {corner}", recipe.name, d.name);
                }
            }
            for d in space.dimensions.iter().filter(|d| d.name == "sigma") {
                assert!((d.unit(2.0 * f64::from(scale)) - 0.477).abs() < 0.01);
            }
        }
    }
}

#[test]
fn what_is_given_is_not_searched_and_kernels_that_are_not_normalised_search_the_ratio() {
    let names = |given: Values| -> Vec<&str> {
        let recipe = crate::filter::registry::recipe("fklms").unwrap();
        Space::new(recipe, &given, Some(500), &data(1.0)).unwrap().dimensions.iter().map(|d| d.name).collect()
    };
    assert_eq!(names(Values::new()), ["sigma", "diffusion-ratio", "lambda"]);
    assert_eq!(names(Values::from([("sigma".into(), Value::Number(1.0))])), ["diffusion-ratio", "lambda"]);
    assert_eq!(names(Values::from([("kernel".into(), Value::Name("gaussian".into()))])), ["sigma", "eta", "lambda"]);
    assert_eq!(names(Values::from([("kernel".into(), Value::Name("linear".into()))])), ["diffusion-ratio", "lambda"]);
}
