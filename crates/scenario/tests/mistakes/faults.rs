//! Faults that cannot happen.

use weir_scenario::Scenario;

use crate::{FILE, check};

#[test]
fn faults_of_one_kind_do_not_overlap() {
    let with = |at: &str, kind: &str| {
        let fault = format!(
            "[[faults]]\n{kind}\nports = [\"near1->switch\", \"bottleneck\"]\nat = \"{at}\"\n"
        );
        Scenario::parse("test.toml", &format!("{FILE}{fault}"), &[])
    };
    let loss = "kind = \"loss\"\nprobability = 0.5";
    let message = with("2999ms", loss).expect_err("an overlap").to_string();
    assert!(
        message.contains(
            "faults.1: the port `bottleneck` still has another fault of this kind, `faults.0`"
        ),
        "{message}"
    );
    assert!(message.starts_with("test.toml:64: "), "{message}");
    assert!(with("3s", loss).is_ok());
    assert!(with("2s", "kind = \"down\"").is_ok());
}

#[test]
fn faults_by_epochs() {
    check(&[
        (
            "at = \"2s\"\nuntil = \"3s\"",
            "at_epoch = 2",
            &["faults.0", "no group has the workload `epochs`"],
        ),
        (
            "at = \"2s\"\nuntil = \"3s\"",
            "until = \"3s\"",
            &["faults.0", "one of `at` and `at_epoch`"],
        ),
        (
            "at = \"2s\"\nuntil = \"3s\"",
            "at = \"2s\"\nat_epoch = 3",
            &["faults.0", "one of `at` and `at_epoch`"],
        ),
        (
            "until = \"3s\"",
            "until_epoch = 3",
            &["faults.0.until_epoch", "ends by what it begins by"],
        ),
        (
            "at = \"2s\"\nuntil = \"3s\"",
            "at_epoch = 2\nuntil_epoch = 2",
            &[
                "faults.0.until_epoch",
                "ends with epoch 2 but begins with epoch 2",
            ],
        ),
    ]);
    let with = |fault: &str| {
        let text = FILE.replace(
            "{ kind = \"transfer\", size = \"1GB\" }",
            "{ kind = \"epochs\", request = \"1B\", response = \"1B\", count = 10 }",
        );
        let fault = format!("[[faults]]\nkind = \"loss\"\nprobability = 1\n{fault}\n");
        let loaded = Scenario::parse("test.toml", &format!("{text}{fault}"), &[]);
        loaded.map(drop).map_err(|error| error.to_string())
    };
    let other_port = "ports = \"near1->switch\"\n";
    assert_eq!(
        with(&format!("{other_port}at_epoch = 0\nuntil_epoch = 10")),
        Ok(())
    );
    for beyond in ["at_epoch = 10", "at_epoch = 9\nuntil_epoch = 11"] {
        let message = with(&format!("{other_port}{beyond}")).expect_err(beyond);
        assert!(
            message.contains("there are 10 epochs, from 0 on"),
            "{message}"
        );
    }
    // It is not known whether an epoch begins during the other fault.
    let message = with("ports = \"bottleneck\"\nat_epoch = 5").expect_err("an overlap");
    assert!(message.contains("another fault of this kind"), "{message}");
}

#[test]
fn addresses_that_change() {
    check(&[(
        "kind = \"loss\"\nports = \"bottleneck\"\nat = \"2s\"\nuntil = \"3s\"\nprobability = 0.01",
        "kind = \"address\"\nports = \"bottleneck\"\nat = \"2s\"",
        &["faults.0.ports", "belongs to a switch"],
    )]);
    let with = |times: &[&str]| {
        let faults = times.iter().map(|at| {
            format!("[[faults]]\nkind = \"address\"\nports = \"near*->switch\"\nat = \"{at}\"\n")
        });
        let text = FILE.to_owned() + &faults.collect::<String>();
        let loaded = Scenario::parse("test.toml", &text, &[]);
        loaded.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(with(&["2s", "3s", "1s"]), Ok(()));
    let message = with(&["2s", "3s", "2s"]).expect_err("two at once");
    assert!(message.contains("another fault of this kind"), "{message}");
}
