//! Something that runs and is asked for its status each second: an enforcer, a controller.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The time between two questions.
const APART: Duration = Duration::from_secs(1);
/// The answers that are kept for pages that open later, and their bytes.
const MOST_ANSWERS: usize = 600;
const MOST_BYTES: usize = 32 << 20;

/// What is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ObservedKind {
    /// `weir enforce`: flows and rules.
    Enforcer,
    /// `weir controller`: flows with deadlines, and the policy's stages.
    Controller,
}

/// An answer, or why there was none.
#[derive(Debug, Serialize)]
struct Told {
    /// Seconds since the first question.
    at: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// What was answered so far.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) kind: ObservedKind,
    /// Where it is asked.
    pub(crate) name: String,
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// As JSON.
    kept: VecDeque<String>,
    bytes: usize,
    /// How many came before those that are kept.
    forgotten: usize,
}

impl Observed {
    pub(crate) fn new(kind: ObservedKind, name: String) -> Self {
        Self {
            kind,
            name,
            answers: Mutex::default(),
        }
    }

    /// Asks every second, without end.
    pub(crate) async fn ask<F, A>(&self, mut ask: F)
    where
        F: FnMut() -> A,
        A: Future<Output = Result<Value, String>>,
    {
        let begun = Instant::now();
        let mut seconds = interval(APART);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            let (answer, problem) = match ask().await {
                Ok(answer) => (Some(answer), None),
                Err(problem) => (None, Some(problem)),
            };
            self.keep(&Told {
                at: begun.elapsed().as_secs_f64(),
                answer,
                problem,
            });
        }
    }

    fn keep(&self, told: &Told) {
        let text = serde_json::to_string(told).unwrap_or_default();
        let mut answers = self.lock();
        answers.bytes += text.len();
        answers.kept.push_back(text);
        while answers.kept.len() > MOST_ANSWERS
            || (answers.bytes > MOST_BYTES && answers.kept.len() > 1)
        {
            let forgotten = answers.kept.pop_front().map_or(0, |text| text.len());
            answers.bytes -= forgotten;
            answers.forgotten += 1;
        }
    }

    /// Returns the answers that a viewer who has seen this many has not seen, and how many there are then.
    pub(crate) fn since(&self, seen: usize) -> (Vec<String>, usize) {
        let answers = self.lock();
        let known = seen.saturating_sub(answers.forgotten);
        let news = answers.kept.iter().skip(known).cloned().collect();
        (news, answers.forgotten + answers.kept.len())
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_asked_every_second_and_a_viewer_gets_what_it_has_not_seen() {
        let observed = Observed::new(ObservedKind::Enforcer, "a test".to_owned());
        let mut asked = 0;
        let ask = || {
            asked += 1;
            let answer = if asked == 2 {
                Err("away".to_owned())
            } else {
                Ok(json!({ "asked": asked }))
            };
            async { answer }
        };
        tokio::select! {
            () = observed.ask(ask) => {}
            () = tokio::time::sleep(Duration::from_millis(2_500)) => {}
        }
        let (news, seen) = observed.since(0);
        let news: Vec<Value> = news
            .iter()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        assert_eq!(news[0], json!({ "at": 0.0, "answer": { "asked": 1 } }));
        assert_eq!(news[1], json!({ "at": 1.0, "problem": "away" }));
        assert_eq!((news.len(), seen), (3, 3));
        assert_eq!(observed.since(2).0.len(), 1);
        assert_eq!(observed.since(3), (Vec::new(), 3));
    }

    #[test]
    fn the_oldest_answers_are_forgotten() {
        let observed = Observed::new(ObservedKind::Controller, String::new());
        for second in 0..1_000 {
            observed.keep(&Told {
                at: f64::from(second),
                answer: None,
                problem: None,
            });
        }
        let (news, seen) = observed.since(0);
        assert_eq!((news.len(), seen), (MOST_ANSWERS, 1_000));
        assert_eq!(news[0], r#"{"at":400.0}"#);
        let long = "x".repeat(MOST_BYTES);
        observed.keep(&Told {
            at: 0.0,
            answer: None,
            problem: Some(long),
        });
        assert_eq!(observed.since(0).0.len(), 1);
    }
}
