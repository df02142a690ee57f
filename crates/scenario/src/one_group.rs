//! A small scenario for unit tests: one group of flows between two hosts.

use crate::{Scenario, Setting};

/// Returns it with these settings of the group, `KEY=VALUE`; `workload` is the value of that key.
pub(crate) fn scenario(workload: &str, settings: &[&str]) -> Scenario {
    let text = format!(
        "title = \"t\"\nsource = \"s\"\nduration = \"1s\"\n\
         [hosts.a]\n[hosts.b]\n[[links]]\nfrom = \"a\"\nto = \"b\"\n\
         rate = \"1Gbps\"\ndelay = \"1us\"\n\
         [groups.g]\nfrom = \"a\"\nto = \"b\"\nworkload = {workload}\n"
    );
    let setting = |text: &&str| {
        let (path, value) = text.split_once('=').unwrap();
        Setting {
            path: format!("groups.g.{path}"),
            value: value.to_owned(),
        }
    };
    let settings: Vec<_> = settings.iter().map(setting).collect();
    Scenario::parse("test.toml", &text, &settings)
        .unwrap()
        .scenario
}
