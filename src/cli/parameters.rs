//! The filters' parameters as options, made from the registry's list, so that each is written down once.

use clap::{Arg, ArgMatches, Command, error::ErrorKind};

use crate::filter::registry::{Value, Values, parameters};

/// The parameters that were given on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(pub(crate) Values);

impl clap::FromArgMatches for Parameters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut values = Values::new();
        for parameter in parameters() {
            if let Some(text) = matches.get_one::<String>(parameter.name) {
                let value = Value::parse(text);
                if matches!(value, Value::Name(_)) && parameter.names.is_empty() {
                    let message = format!("--{} must be a number, got '{text}'", parameter.name);
                    return Err(clap::Error::raw(ErrorKind::InvalidValue, message + "\n"));
                }
                values.insert(parameter.name.into(), value);
            }
        }
        Ok(Self(values))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

impl clap::Args for Parameters {
    fn augment_args(command: Command) -> Command {
        parameters().into_iter().fold(command.next_help_heading("Parameters of the filters"), |command, parameter| {
            let (value, choice) = match parameter.names {
                [] => ("NUMBER", String::new()),
                names => ("NAME", format!(": {}", names.join(", "))),
            };
            let help = format!("{}{choice}", parameter.about);
            command.arg(Arg::new(parameter.name).long(parameter.name).value_name(value).help(help).allow_hyphen_values(true))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
