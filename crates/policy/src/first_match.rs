//! The one rule of all lists of rules: the first that matches holds.

/// Conditions on flows, which are described by an `F`.
pub trait Match<F: ?Sized> {
    /// Whether all conditions hold for a flow. Allocates nothing.
    fn matches(&self, flow: &F) -> bool;
}

/// A rule with what follows from it.
impl<F: ?Sized, R: Match<F>, A> Match<F> for (R, A) {
    fn matches(&self, flow: &F) -> bool {
        self.0.matches(flow)
    }
}

/// The first rule that matches a flow.
pub fn first_match<'r, F: ?Sized, R: Match<F>>(rules: &'r [R], flow: &F) -> Option<&'r R> {
    rules.iter().find(|rule| rule.matches(flow))
}
