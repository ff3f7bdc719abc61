//! Variances from the likelihood of the state-space model: expectation-maximisation instead of a search.
//!
//! What the likelihood does not settle, the width of a kernel and forgetting, is compared on a short list.

use super::score::{Data, score};
use crate::cli::{parallel, progress};
use crate::filter::Window;
use crate::filter::em::{Estimate, Features, Forgetting, estimate};
use crate::filter::registry::{Likelihood, Recipe, Settings, Value, Values};
use crate::{Complex64, Error, Result};

/// Features that stand for a kernel.
const FEATURES: usize = 48;
/// Widths that are compared, in units of the spread.
const WIDTHS: [f64; 7] = [0.35, 0.5, 0.7, 1.0, 1.5, 2.2, 3.5];
/// Forgetting that is compared, as `1 − λ`.
const FORGETS: [f64; 6] = [0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2];

/// What the likelihood says about a filter.
pub(crate) struct Fitted {
    pub(crate) settings: Settings,
    pub(crate) estimate: Estimate,
    /// Features that stood for the kernel.
    pub(crate) features: usize,
}

/// The parameters that `given` leaves open; none after Ctrl-C.
pub(crate) fn fit(recipe: &'static Recipe, given: &Values, data: &Data) -> Result<Option<Fitted>> {
    let spread = data.spread();
    let number = |values: &Values, name: &str| match values.get(name) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    let (tx, rx) = data.streams();
    let wide = |z: &crate::Complex32| Complex64::new(z.re.into(), z.im.into());
    let mut window = Window::new(data.taps)?;
    let inputs: Vec<Vec<Complex64>> = tx.iter().map(|x| window.push(wide(x)).to_vec()).collect();
    let targets: Vec<Complex64> = rx.iter().map(wide).collect();
    let lambda = number(given, "lambda");

    if recipe.likelihood == Some(Likelihood::Exact) {
        let forgetting = lambda.map_or(Forgetting::Learned(0.999), Forgetting::Fixed);
        let found = estimate(&inputs.concat(), &targets, forgetting)?;
        let mut values = Values::from([
            ("lambda".into(), number_of_below_one(found.model.lambda)),
            ("process-noise".into(), number_of(found.model.process_noise)),
            ("noise".into(), number_of(found.model.noise)),
        ]);
        values.extend(given.clone());
        return Ok(Some(Fitted { settings: recipe.settle(&values, spread)?, estimate: found, features: data.taps }));
    }
    if ["eta", "diffusion-ratio"].iter().any(|name| given.contains_key(*name)) {
        return Err(Error::parameter("method", "search where eta or diffusion-ratio is given: em would find them", "em"));
    }

    // Points that features are picked from: more would say little more.
    let points: Vec<Vec<Complex64>> = inputs.iter().step_by(inputs.len().div_ceil(1000)).cloned().collect();
    let at = |sigma: Option<f64>, lambda: f64| -> Result<Fitted> {
        let mut values = given.clone();
        if let Some(sigma) = sigma {
            values.insert("sigma".into(), number_of(sigma));
        }
        let settled = recipe.settle(&values, spread)?;
        let kernel = settled.kernel::<f64>()?;
        let finite = |x: &&Vec<Complex64>| x.iter().all(|z| z.re.is_finite() && z.im.is_finite());
        let usable = inputs.iter().filter(finite).count().max(1);
        let norm = inputs.iter().filter(finite).map(|x| kernel.norm(x)).sum::<f64>() / usable as f64;
        let features = Features::pick(kernel, &points, FEATURES);
        let mut rows = Vec::with_capacity(inputs.len() * features.len());
        inputs.iter().for_each(|x| features.map(x, &mut rows));
        let found = estimate(&rows, &targets, Forgetting::Fixed(lambda))?;
        values.insert("diffusion-ratio".into(), number_of(found.gain_ratio / norm));
        if recipe.has("lambda") {
            values.insert("lambda".into(), Value::Number(lambda));
        }
        Ok(Fitted { settings: recipe.settle(&values, spread)?, estimate: found, features: features.len() })
    };

    let settled = recipe.settle(given, spread)?;
    let widths: Vec<Option<f64>> = match settled.values().contains_key("sigma") && !given.contains_key("sigma") {
        true => WIDTHS.iter().map(|w| Some(w * spread)).collect(),
        false => vec![number(given, "sigma")],
    };
    let forgets = recipe.has("lambda") && lambda.is_none();
    let first = if forgets { 0.999 } else { lambda.unwrap_or(1.0) };
    let best = best_predictor(&widths, data, |&sigma| at(sigma, first))?;
    let Some((i, found)) = best else { return Ok(None) };
    if !forgets {
        return Ok(Some(found));
    }
    Ok(best_predictor(&FORGETS, data, |&forget| at(widths[i], 1.0 - forget))?.map(|(_, found)| found))
}

/// The one of `options` whose filter predicts best, and which it was.
///
/// Not the most likely one: the exact filter, whose likelihood that is, makes use of kernels that are too wide for one without a covariance.
fn best_predictor<O: Sync>(options: &[O], data: &Data, fit: impl Fn(&O) -> Result<Fitted> + Sync) -> Result<Option<(usize, Fitted)>> {
    let bar = progress::pieces(options.len() as u64, "em");
    let mut all = Vec::new();
    let try_one = |i: usize| fit(&options[i]).and_then(|fitted| Ok((score(&fitted.settings, data, None)?.db, fitted)));
    let done = parallel::each(options.len(), &bar, try_one, |_, fitted| all.push(fitted));
    bar.finish_and_clear();
    if done < options.len() {
        return Ok(None);
    }
    let all = all.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(all.into_iter().enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0)).map(|(i, (_, fitted))| (i, fitted)))
}

/// The same for a number whose distance from 1 counts.
fn number_of_below_one(value: f64) -> Value {
    let Value::Number(distance) = number_of(1.0 - value) else { return Value::Number(value) };
    Value::Number(1.0 - distance)
}

/// Six digits are more than the data know.
fn number_of(value: f64) -> Value {
    Value::Number(format!("{value:.5e}").parse().unwrap_or(value))
}
