//! Pages that can only be looked at: a live run, something that is asked each second, a page of its own.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use serde_json::{Value, json};
use support::{Studio, TEXT};
use weir_sim::Simulation;
use weir_studio::{LiveRun, ObservedKind, Script};
use weir_units::{Duration, Time};

fn has_samples(of: &'static str) -> impl Fn(&Value) -> bool {
    move |samples| !samples[of].as_array().unwrap().is_empty()
}

#[tokio::test]
async fn a_live_run_is_shown_while_it_goes_on_and_when_it_is_over() {
    let scenario = Script::of_file("test.toml", TEXT).scenario().unwrap();
    let run = LiveRun::new("test.toml", &scenario);
    let shown = run.clone();
    let serve = |any, tell| weir_studio::show_live(shown, any, tell, std::future::pending());
    let studio = Studio::serving(serve).await;
    let mut events = studio.events().await;
    events
        .next("state", |state| state["status"] == "playing")
        .await;

    // A simulation records what a live run does.
    let mut recorder = run.clone();
    let mut simulation = Simulation::new(scenario).unwrap();
    let half = Time::ZERO + Duration::from_millis(30);
    simulation.advance(half, &mut recorder).unwrap();
    run.reached(half);
    let ports = events.next("samples", has_samples("ports")).await;
    assert_eq!(ports["run"], "a");
    assert!(ports["groups"].as_array().unwrap().is_empty());
    let groups = events.next("samples", has_samples("groups")).await;
    assert!(groups["groups"][0]["delivered"][0].as_f64().is_some());
    let has_round_trip_times = |probes: &Value| {
        let times = probes["groups"][0]["rtt"].as_array().unwrap();
        times
            .iter()
            .any(|time| time.as_f64().is_some_and(|time| time > 0.0))
    };
    events.next("probes", has_round_trip_times).await;

    let description = studio.get("/api/scenario").await.json();
    assert_eq!(description["kind"], "live");
    assert!(description["nodes"].as_array().unwrap().len() > 2);
    assert!(description["groups"][0]["capacity"].as_f64().unwrap() > 1e6);
    let flows = studio.get("/api/flows").await.json();
    assert_eq!(flows["total"], 2);
    assert_eq!(flows["flows"][0]["destination"], "receiver");
    assert_eq!(studio.get("/api/summary").await.status, 409);

    // A flow that is watched shows its past.
    let watch = json!({ "run": "a", "flows": ["dctcp/1"] });
    assert_eq!(studio.post("/api/watch", watch).await.status, 204);
    let named = |watched: &Value| watched["flows"] == json!(["dctcp/1"]);
    events.next("watched", named).await;
    let probes = events.next("probes", has_samples("flows")).await;
    assert!(probes["flows"][0]["delivered"].as_array().unwrap().len() > 1);
    let nobody = json!({ "run": "a", "flows": ["nobody/1"] });
    assert_eq!(studio.post("/api/watch", nobody).await.status, 422);

    simulation.advance(Time::MAX, &mut recorder).unwrap();
    let summary = simulation.finish(&mut recorder).unwrap();
    run.end(&summary);
    let is_over = |state: &Value| state["status"] == "ended";
    let state = events.next("state", is_over).await;
    assert_eq!(state["now"], 0.06);
    let told = studio.get("/api/summary").await.json();
    assert_eq!(
        told["groups"]["dctcp"]["delivered_bytes"],
        summary.groups["dctcp"].delivered.bytes()
    );
    let play = json!({ "run": "a", "action": "play" });
    assert_eq!(studio.post("/api/control", play).await.status, 409);
}

#[tokio::test]
async fn answers_are_told_as_they_come_and_again_to_who_comes_later() {
    let mut asked = 0;
    let ask = move || {
        asked += 1;
        let answer = match asked {
            1 => Ok(json!({ "flows": [] })),
            _ => Err("it is away".to_owned()),
        };
        async { answer }
    };
    let about = (ObservedKind::Enforcer, "a socket".to_owned());
    let serve =
        move |any, tell| weir_studio::observe(about, ask, any, tell, std::future::pending());
    let studio = Studio::serving(serve).await;
    let described = studio.get("/api/scenario").await.json();
    assert_eq!(described, json!({ "kind": "enforcer", "name": "a socket" }));
    let is_away = |told: &Value| told["problem"] == "it is away";
    let has_answered = |told: &Value| told["answer"] == json!({ "flows": [] });
    let mut events = studio.events().await;
    events.next("status", has_answered).await;
    events.next("status", is_away).await;
    let mut later = studio.events().await;
    later.next("status", has_answered).await;
    let change = json!({ "run": "a", "knob": "x", "value": 1 });
    assert_eq!(studio.post("/api/change", change).await.status, 409);
}

#[tokio::test]
async fn a_page_of_its_own_is_shown_to_who_has_the_token() {
    let page = "<!doctype html><title>compared</title>".to_owned();
    let text = page.clone();
    let serve = |any, tell| weir_studio::show_page(page, any, tell, std::future::pending());
    let studio = Studio::serving(serve).await;
    let shown = studio.get("/").await;
    assert_eq!((shown.status, shown.body), (200, text));
    assert!(
        shown
            .head
            .to_lowercase()
            .contains("content-security-policy: default-src 'none'")
    );
    let host = studio.host();
    assert_eq!(studio.get_as("/", &[&host]).await.status, 403);
}
