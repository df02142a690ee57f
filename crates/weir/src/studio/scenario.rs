//! The scenario that the studio plays.

use weir_studio::Script;

use crate::failure::Failure;
use crate::scenarios::{self, ScenarioArguments};

/// Returns the scenario, checked, as the file has it where nothing else is asked for.
pub(super) fn script(chosen: &ScenarioArguments, variant: Option<&str>) -> Result<Script, Failure> {
    let settings = chosen.settings(None);
    let loaded = chosen.load(&settings);
    let loaded = loaded.map_err(|error| chosen.failure(&error))?;
    let (mut loaded, _) = chosen.under_policy(loaded)?;
    let name = chosen.name();
    let is_file = settings.is_empty() && variant.is_none() && !chosen.has_policy();
    if let Some(wanted) = variant {
        let names: Vec<_> = loaded
            .variants
            .iter()
            .map(|variant| variant.name.clone())
            .collect();
        let place = names.iter().position(|name| name == wanted);
        let place = place.ok_or_else(|| {
            let known = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            Failure::option(
                "variant",
                format!("there is no variant `{wanted}`; the file has: {known}"),
            )
        })?;
        loaded.scenario = loaded.variants.swap_remove(place).scenario;
    }
    loaded.variants.clear();
    scenarios::check_simulation(&loaded)?;
    if is_file {
        let text = chosen.text().map_err(|error| chosen.failure(&error))?;
        return Ok(Script::of_file(&name, &text));
    }
    Script::of_scenario(&name, &loaded.scenario).map_err(Failure::of)
}
