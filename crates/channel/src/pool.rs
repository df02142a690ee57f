//! The servers of a channel, and which of them gets a call.

mod choice;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use weir_units::Time;

use crate::protocol::Link;
use crate::server::{Outstanding, Server};
use crate::sources::Sources;

use choice::Choices;

/// Which server gets a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancing {
    /// The first one that can be reached, in the resolver's order. Only it has a connection.
    PickFirst,
    /// Each in turn.
    RoundRobin,
    /// Of two at random the one with fewer calls under way; the default.
    #[default]
    LeastLoaded,
}

/// The state of a server's connection.
#[derive(Clone, Debug)]
pub(crate) enum LinkState<L> {
    /// Not wanted yet.
    Idle,
    Connecting,
    Ready(L),
    /// The last attempt failed; the next one waits.
    Failed(String),
}

/// A server.
#[derive(Debug)]
pub(crate) struct Member<L> {
    server: Arc<Server>,
    state: LinkState<L>,
}

/// The servers of a channel.
#[derive(Debug)]
pub(crate) struct Pool<L> {
    balancing: Balancing,
    members: Vec<Member<L>>,
    /// The index where round robin goes on.
    next: AtomicUsize,
    choices: Choices,
    /// For the servers: a choice reads no clock.
    sources: Arc<Sources>,
}

/// Who gets a call.
#[derive(Debug)]
pub(crate) enum Pick<L> {
    Ready {
        link: L,
        call: Outstanding,
    },
    /// Nobody yet.
    Wait,
    /// Nobody can be reached, for this reason.
    Failed(String),
}

impl<L: Link> Member<L> {
    fn new(address: SocketAddr, sources: Arc<Sources>) -> Self {
        Self {
            server: Arc::new(Server::new(address, sources)),
            state: LinkState::Idle,
        }
    }

    pub(crate) fn usable(&self) -> Option<&L> {
        match &self.state {
            LinkState::Ready(link) => Some(link).filter(|link| link.is_usable()),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> &LinkState<L> {
        &self.state
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }
}

impl<L: Link> Pool<L> {
    /// Creates a pool without servers; the seed is for random choices between them.
    pub(crate) fn new(balancing: Balancing, seed: u64, sources: Arc<Sources>) -> Self {
        Self {
            balancing,
            members: Vec::new(),
            next: AtomicUsize::new(0),
            choices: Choices::new(seed),
            sources,
        }
    }

    pub(crate) fn members(&self) -> &[Member<L>] {
        &self.members
    }

    /// Replaces the servers by these, in this order; those that stay keep their state. Returns the
    /// addresses of the new ones, and those that left.
    pub(crate) fn set_addresses(
        &mut self,
        addresses: &[SocketAddr],
    ) -> (Vec<SocketAddr>, Vec<Member<L>>) {
        let mut old = std::mem::take(&mut self.members);
        let mut added = Vec::new();
        for address in addresses {
            let is_it = |member: &Member<L>| member.server.address == *address;
            let place = old.iter().position(is_it);
            self.members.push(match place {
                Some(place) => old.swap_remove(place),
                None => {
                    added.push(*address);
                    Member::new(*address, self.sources.clone())
                }
            });
        }
        (added, old)
    }

    /// Sets the state of a server's connection, if it is still one; returns the one before.
    pub(crate) fn set_state(
        &mut self,
        address: SocketAddr,
        state: LinkState<L>,
    ) -> Option<LinkState<L>> {
        let mut members = self.members.iter_mut();
        let member = members.find(|member| member.server.address == address)?;
        Some(std::mem::replace(&mut member.state, state))
    }

    /// Returns how many servers, from the first on, should have a connection.
    pub(crate) fn wanted(&self) -> usize {
        let count = self.members.len();
        if self.balancing != Balancing::PickFirst {
            return count;
        }
        let ready = |member: &Member<L>| member.usable().is_some();
        let not_failed = |member: &Member<L>| !matches!(member.state, LinkState::Failed(_));
        let first = self.members.iter().position(ready);
        let first = first.or_else(|| self.members.iter().position(not_failed));
        first.map_or(count, |index| index + 1)
    }

    /// Returns who gets the next call; one of `tried` only if no other is ready. Asks for the time
    /// only where a server has failed.
    pub(crate) fn pick(&self, tried: &[SocketAddr], now: impl Fn() -> Time) -> Pick<L> {
        match self.choose(tried, now) {
            Some(candidate) => Pick::Ready {
                link: candidate.link.clone(),
                call: Outstanding::new(&candidate.member.server),
            },
            None => self.none(),
        }
    }

    fn none(&self) -> Pick<L> {
        let mut reason = "there is no server".to_owned();
        for member in &self.members {
            match &member.state {
                LinkState::Failed(error) => reason = format!("{}: {error}", member.server.address),
                _ => return Pick::Wait,
            }
        }
        Pick::Failed(reason)
    }
}

#[cfg(test)]
mod tests;
