//! Routing of datagrams: the engine's endpoint, and the connections by index.

use std::sync::Arc;

/// The endpoint `E` and its connections.
pub(crate) struct Routing<E, L> {
    pub(crate) engine: E,
    connections: Vec<Option<Arc<L>>>,
    /// The number of connections.
    pub(crate) open: usize,
}

impl<E, L> Routing<E, L> {
    /// Returns a table without connections.
    pub(crate) const fn new(engine: E) -> Self {
        Self {
            engine,
            connections: Vec::new(),
            open: 0,
        }
    }

    pub(crate) fn connection(&self, index: usize) -> Option<&Arc<L>> {
        self.connections.get(index)?.as_ref()
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = &Arc<L>> {
        self.connections.iter().flatten()
    }

    /// Adds a new connection.
    pub(crate) fn insert(&mut self, index: usize, connection: L) -> Arc<L> {
        let connection = Arc::new(connection);
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index] = Some(connection.clone());
        self.open += 1;
        connection
    }

    /// Removes a connection; returns whether it was the last one.
    pub(crate) fn remove(&mut self, index: usize) -> bool {
        let gone = self.connections.get_mut(index).and_then(Option::take);
        if gone.is_some() {
            self.open -= 1;
        }
        gone.is_some() && self.open == 0
    }

    pub(crate) fn take_all(&mut self) -> Vec<Arc<L>> {
        self.open = 0;
        self.connections.drain(..).flatten().collect()
    }
}
