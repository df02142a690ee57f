//! What a packet meets between hosts: queues, marking, links, faults.
