//! What viewers can ask of a run.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, atomic::Ordering};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::super::Subject;
use super::history::History;
use super::states::{Kept, States};
use super::{Ends, Tuner};
use crate::blocks::{self, Recorder};
use crate::cli::interrupt;
use crate::filter::registry::{self, Parameter, Settings, Spacing, Unit, Value, Values};
use crate::flowgraphs::track::{Seen, View};
use crate::iq::{Datatype, Status, Writer, sigmf::Capture, sigmf::Meta};
use crate::metrics::Spread;
use crate::ofdm::Constellation;
use crate::plot::{Style, style_at, style_of, styles_of};
use crate::serve::{Command, Control};
use crate::{Error, Result};

/// Over which "now" is.
const NOW: Duration = Duration::from_secs(1);

/// A run as viewers see it.
pub(super) struct Desk {
    hello: Json,
    knobs: Vec<Knob>,
    /// The filters, once they run.
    seen: OnceLock<Vec<Seen>>,
    moment: Mutex<Moment>,
    states: Option<States>,
    recorder: Option<Recorder>,
    recorded: Mutex<Vec<String>>,
    /// What a recording says of itself.
    meta: Meta,
    tuner: Option<Box<dyn Tuner>>,
}

/// What is known of a filter beside what it tells.
struct Knob {
    name: String,
    recipe: &'static str,
    values: Mutex<Values>,
}

/// The last look, and what led to it.
#[derive(Default)]
struct Moment {
    elapsed: Duration,
    /// Samples a second of the slowest filter.
    rate: f64,
    sync: Vec<Status>,
    /// When "now" began, and how many samples the slowest filter had tracked.
    since: (Duration, u64),
    errors: Vec<Errors>,
}

/// A filter's errors: over the run, at the beginning of "now", and over the last complete one.
#[derive(Default)]
struct Errors {
    run: History<Spread>,
    since: Spread,
    now: Spread,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    pub(super) fn new(subject: &Subject, ends: Ends, keep: Option<PathBuf>) -> Result<Self> {
        let Ends { recorder, tuner, centre_hz, channels } = ends;
        let several = channels.len() > 1;
        let names =
            |recipe: &str| if several { channels.iter().map(|c| format!("{recipe} rx{c}")).collect() } else { vec![recipe.to_owned()] };
        // One channel after the other, as the flowgraph has them.
        let of_recipe: Vec<(Vec<String>, &Settings)> =
            subject.settings.iter().map(|settings| (names(settings.recipe().name), settings)).collect();
        let all = (0..channels.len().max(1)).flat_map(|c| of_recipe.iter().map(move |(names, settings)| (names[c].clone(), *settings)));
        let all: Vec<(String, &Settings)> = all.collect();
        let styles = styles_of(&all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        let filters = all
            .iter()
            .zip(styles)
            .map(|((name, settings), style)| describe(name, settings, style, subject.taps))
            .collect::<Result<Vec<_>>>()?;
        let ideal = subject
            .waveform
            .as_ref()
            .map(|w| Constellation::new(w.config.modulation).points().iter().map(|z| [z.re, z.im]).collect::<Vec<_>>());
        let looks = ["rx", "tx", "prediction", "error", "measured", "learned", "floor"].map(|name| (name.to_owned(), look(style_of(name))));
        let map = (0..64).map(|i| crate::plot::viridis(f64::from(i) / 63.0)).map(|c| json!([c.0, c.1, c.2]));
        let hello = json!({
            "version": crate::serve::frame::VERSION,
            "source": subject.source,
            "sample_rate": subject.sample_rate.filter(|rate| *rate > 0.0),
            "centre_hz": centre_hz,
            "equalize": subject.equalize,
            "real": subject.real,
            "advance": subject.advance,
            "target": if subject.equalize { "tx" } else { "rx" },
            "ideal": ideal.unwrap_or_default(),
            "looks": looks.into_iter().collect::<Map<_, _>>(),
            "cycle": (0..8).map(|i| look(style_at(i))).collect::<Vec<_>>(),
            "map": map.collect::<Vec<_>>(),
            "filters": filters,
            "keep": keep.is_some(),
            "recorder": keep.is_some() && recorder.is_some(),
            "radio": tuner.as_ref().map(|tuner| json!({ "settings": tuner.settings(), "transmits": tuner.transmits() })),
        });
        let mut meta = Meta::new(Datatype::CF32_LE, subject.sample_rate);
        meta.global.description = Some(format!("received, {}", subject.source));
        meta.captures.push(Capture { frequency: centre_hz, ..Capture::default() });
        let knob = |(name, settings): (String, &Settings)| Knob {
            name,
            recipe: settings.recipe().name,
            values: Mutex::new(settings.values().clone()),
        };
        let moment = Moment { errors: all.iter().map(|_| Errors::default()).collect(), ..Moment::default() };
        let knobs = all.into_iter().map(knob).collect();
        let (seen, recorded) = (OnceLock::new(), Mutex::default());
        Ok(Self { hello, knobs, seen, moment: Mutex::new(moment), states: keep.map(States), recorder, recorded, meta, tuner })
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.knobs.iter().map(|knob| knob.name.as_str()).collect()
    }

    /// Takes down how the filters do.
    pub(super) fn look(&self, view: &View<'_>) {
        self.seen.get_or_init(|| view.filters.to_vec());
        let mut moment = lock(&self.moment);
        let moment = &mut *moment;
        let reports: Vec<_> = view.filters.iter().map(|filter| filter.probe.read()).collect();
        let slowest = reports.iter().map(|report| report.samples).min().unwrap_or(0);
        moment.elapsed = view.elapsed;
        moment.sync.clone_from(&view.sync);
        let (began, before) = moment.since;
        let passed = view.elapsed.saturating_sub(began);
        let over = passed >= NOW;
        if over || began.is_zero() {
            moment.rate = slowest.saturating_sub(before) as f64 / passed.as_secs_f64().max(1e-3);
        }
        if over {
            moment.since = (view.elapsed, slowest);
        }
        for (errors, report) in moment.errors.iter_mut().zip(reports) {
            errors.run.offer(report.samples, report.spread);
            // A slow filter may have no complete row within a second.
            if over && report.spread.rows > errors.since.rows || errors.since == Spread::default() {
                errors.now = report.spread.since(&errors.since);
            }
            if over {
                errors.since = report.spread;
            }
        }
    }

    /// NMSE of a filter over the run, and its interval: between one moment and the next.
    pub(super) fn errors(&self, filter: usize) -> Vec<(u64, Vec<f32>)> {
        let moment = lock(&self.moment);
        let Some(errors) = moment.errors.get(filter) else { return Vec::new() };
        let first = (0, Spread::default());
        let before = std::iter::once(&first).chain(errors.run.moments());
        let steps = before.zip(errors.run.moments()).map(|(before, now)| (now.0, now.1.since(&before.1)));
        let steps = steps.filter(|(_, step)| step.rows > 0);
        let unknown = (f64::NAN, f64::NAN);
        steps
            .map(|(at, step)| (at, step, step.interval_db().unwrap_or(unknown)))
            .map(|(at, step, (low, high))| (at, vec![step.nmse_db() as f32, low as f32, high as f32]))
            .collect()
    }

    /// The filter of that name: what is known of it, and a handle to call it.
    fn filter(&self, name: &str) -> Result<(&Knob, &Seen)> {
        let n = self.knobs.iter().position(|knob| knob.name == name).ok_or_else(|| Error::unknown("filter", name, self.names()))?;
        let seen = self.seen.get().and_then(|seen| seen.get(n)).ok_or_else(|| Error::Data("the run has not begun".into()))?;
        Ok((&self.knobs[n], seen))
    }

    fn obey(&self, filter: &str, command: blocks::Command) -> Result<Json> {
        self.filter(filter)?.1.controls.call(command)?;
        Ok(json!({}))
    }

    fn states(&self) -> Result<&States> {
        self.states.as_ref().ok_or_else(|| Error::Data("the run was started without --keep DIR: there is no folder for this".into()))
    }

    fn save(&self, filter: &str, name: &str) -> Result<Json> {
        let (knob, seen) = self.filter(filter)?;
        let states = self.states()?;
        let state = seen.controls.save()?;
        let kept = Kept::new(knob.recipe, &lock(&knob.values), state)?;
        states.write(name, &kept)?;
        Ok(json!({ "saved": name }))
    }

    fn load(&self, filter: &str, name: &str) -> Result<Json> {
        let (knob, seen) = self.filter(filter)?;
        let kept = self.states()?.read(name)?;
        if kept.filter != knob.recipe {
            return Err(Error::parameter("the state", format!("one of {}", knob.recipe), format!("'{name}' of {}", kept.filter)));
        }
        let values = kept.values()?;
        seen.controls.call(blocks::Command::Restore(kept.state))?;
        *lock(&knob.values) = values;
        Ok(json!({ "restored": name }))
    }

    fn record(&self, on: bool) -> Result<Json> {
        let states = self.states()?;
        let recorder = self.recorder.as_ref().ok_or_else(|| Error::Data("nothing of this run can be recorded".into()))?;
        if !on {
            recorder.stop();
            return Ok(json!({}));
        }
        if recorder.running().is_some() {
            return Err(Error::Data("it records already".into()));
        }
        let (name, path) = states.recording();
        recorder.start(&name, Writer::create(path, self.meta.clone(), false)?);
        lock(&self.recorded).push(name.clone());
        Ok(json!({ "recording": name }))
    }
}

impl Control for Desk {
    fn hello(&self) -> Json {
        self.hello.clone()
    }

    fn state(&self) -> Json {
        let moment = lock(&self.moment);
        let finite = |value: f64| Some(value).filter(|v| v.is_finite());
        let filter = |(n, knob): (usize, &Knob)| {
            let report = self.seen.get().and_then(|seen| seen.get(n)).map(|seen| seen.probe.read()).unwrap_or_default();
            let now = moment.errors.get(n).map(|errors| errors.now).unwrap_or_default();
            let (low, high) = now.interval_db().unzip();
            let nmse = if now.rows > 0 { now.nmse_db() } else { report.nmse_db };
            json!({
                "name": knob.name, "samples": report.samples, "nmse_db": finite(nmse), "low": low, "high": high, "nmse_total_db": finite(report.nmse_total_db),
                "centres": report.centres, "adapt": report.adapts, "bypass": report.bypass, "parameters": &*lock(&knob.values),
            })
        };
        let sync = |s: &Status| {
            json!({
                "state": format!("{:?}", s.state).to_lowercase(), "delay_samples": s.delay_samples, "cfo": s.cfo, "clock_ppm": s.clock_ppm, "gain": s.gain, "searches": s.searches,
                "gap_samples": s.gap_samples, "failure": s.failure,
            })
        };
        let radio = self.tuner.as_ref().map(|tuner| tuner.state());
        let level = |name: &str| radio.as_ref().map(|radio| radio[name].clone());
        let missing = radio.as_ref().and_then(|radio| radio["gap_samples"].as_u64()).unwrap_or(0);
        json!({
            "elapsed": moment.elapsed.as_secs_f64(),
            "rate": moment.rate,
            "level_dbfs": level("level_dbfs"),
            "peak_dbfs": level("peak_dbfs"),
            "clipped": level("clipped"),
            "gap_samples": moment.sync.iter().map(|s| s.gap_samples).max().unwrap_or(0).max(missing),
            "sync": moment.sync.iter().map(sync).collect::<Vec<_>>(),
            "filters": self.knobs.iter().enumerate().map(filter).collect::<Vec<_>>(),
            "recording": self.recorder.as_ref().and_then(|recorder| recorder.running()),
            "record_failure": self.recorder.as_ref().and_then(|recorder| recorder.failure()),
            "recorded": &*lock(&self.recorded),
            "saved": self.states.as_ref().map(|states| states.names()).unwrap_or_default(),
            "radio": radio,
        })
    }

    fn call(&self, command: Command) -> Result<Json> {
        match command {
            Command::Adapt { filter, on } => self.obey(&filter, blocks::Command::Adapt(on)),
            Command::Bypass { filter, on } => self.obey(&filter, blocks::Command::Bypass(on)),
            Command::Reset { filter } => self.obey(&filter, blocks::Command::Reset),
            Command::Set { filter, parameter, value } => {
                let answer = self.obey(&filter, blocks::Command::Set(parameter.clone(), value))?;
                lock(&self.filter(&filter)?.0.values).insert(parameter, Value::Number(value));
                Ok(answer)
            }
            Command::Save { filter, name } => self.save(&filter, &name),
            Command::Load { filter, name } => self.load(&filter, &name),
            Command::Radio { setting, value } => {
                let tuner = self.tuner.as_ref().ok_or_else(|| Error::Data("this run has no radio".into()))?;
                tuner.set(&setting, value)?;
                Ok(json!({}))
            }
            Command::Record { on } => self.record(on),
            Command::Stop {} => {
                interrupt::watch().store(true, Ordering::SeqCst);
                Ok(json!({}))
            }
        }
    }
}

fn look(style: Style) -> Json {
    json!({ "colour": style.colour.hex(), "dash": style.dash.pattern() })
}

/// A filter for viewers: which parameters it has, and which of them can be changed while it runs.
fn describe(name: &str, settings: &Settings, style: Style, taps: usize) -> Result<Json> {
    let recipe = settings.recipe();
    let mut tracker = registry::tracker::<f32>(settings, taps)?;
    // It says which names it knows when it is asked for one that it does not.
    let live = match tracker.set("", 0.0) {
        Err(Error::NotApplicable { known, .. }) => known,
        _ => Vec::new(),
    };
    let parameters = recipe.parameters.iter().map(|p| {
        let usual = usual(p, settings, taps);
        let (low, high, unit) = (usual.map(|u| u.0), usual.map(|u| u.1), usual.map_or("", |u| u.2));
        json!({
            "name": p.name, "about": p.about, "usual": true, "low": low, "high": high, "unit": unit,
            "live": p.names.is_empty() && live.iter().any(|name| name == p.name), "value": settings.values().get(p.name),
        })
    });
    let members: Vec<String> = tracker.portrait().members.into_iter().map(|(name, _)| name).collect();
    let Json::Object(mut described) = look(style) else { return Err(Error::Data("a look is an object".into())) };
    described.extend([
        ("name".to_owned(), json!(name)),
        ("about".into(), json!(recipe.about)),
        ("members".into(), json!(members)),
        ("parameters".into(), json!(parameters.collect::<Vec<_>>())),
    ]);
    Ok(Json::Object(described))
}

/// The range that a parameter is searched in, and what it is a multiple of where that is not known before the run.
fn usual(parameter: &Parameter, settings: &Settings, taps: usize) -> Option<(f64, f64, &'static str)> {
    let search = parameter.search?;
    let unit = match search.unit {
        Unit::TargetPower => "of the target's power",
        Unit::PowerRatio => "of the target's power over the input's",
        _ => "",
    };
    let (from, to) = if unit.is_empty() { search.ends(settings, taps, settings.spread(), 1.0).ok()? } else { (search.from, search.to) };
    Some(if search.spacing == Spacing::Complement { (1.0 - to, 1.0 - from, unit) } else { (from, to, unit) })
}
