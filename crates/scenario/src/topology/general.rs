//! The general form: `[hosts]`, `[switches]`, `[[links]]` and `[[routes]]`.

use super::build::{Builder, Hosts};
use super::{Route, Switch, check_name, links};
use crate::document::Reported;
use crate::schema::Fields;

/// Reads the parts of a topology in the general form.
pub(crate) fn read(file: &Fields<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    for (name, at) in file.needed("hosts")?.named("tables `[hosts.NAME]`")? {
        let hosts = Hosts::read(&at, ())?;
        builder.add_hosts(&at, name, hosts.count)?;
    }
    if let Some(switches) = file.at("switches") {
        for (name, at) in switches.named("tables `[switches.NAME]`")? {
            check_name(&at, name)?;
            let switch = Switch::read(&at, &builder.names)?;
            builder.add_switch(&at, switch)?;
        }
    }
    for at in file.needed("links")?.list("tables `[[links]]`")? {
        links::read(at, builder)?;
    }
    if let Some(routes) = file.at("routes") {
        for at in routes.list("tables `[[routes]]`")? {
            let route = Route::read(&at, &*builder)?;
            builder.topology.explicit_routes.push(route);
        }
    }
    Ok(())
}
