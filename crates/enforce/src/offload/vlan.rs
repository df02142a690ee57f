//! VLAN tags (IEEE 802.1Q) in frames with a virtio-net header.

use super::vnet::VnetHeader;

/// The two Ethernet addresses.
pub(super) const ADDRESSES: usize = 12;

/// A tag between a frame's Ethernet addresses and its EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// The tag protocol identifier of a customer or a provider.
    pub kind: u16,
    /// Priority and VLAN identifier.
    pub control: u16,
}

impl VlanTag {
    /// The identifier of a customer's tag.
    pub const CUSTOMER: u16 = 0x8100;
    /// The identifier of a provider's tag (IEEE 802.1ad).
    pub const PROVIDER: u16 = 0x88A8;
    /// The length of a tag, in bytes.
    pub const LENGTH: usize = 4;

    /// Inserts the tag into the frame in the first `length` bytes of `buffer`, virtio-net header first.
    /// Returns the new length; `None` if there is no room, or no frame.
    pub fn insert(&self, buffer: &mut [u8], length: usize) -> Option<usize> {
        let offset = VnetHeader::LENGTH + ADDRESSES;
        let longer = length + Self::LENGTH;
        if length < offset || longer > buffer.len() {
            return None;
        }
        buffer.copy_within(offset..length, offset + Self::LENGTH);
        let tag = buffer.get_mut(offset..)?.first_chunk_mut()?;
        let ([k0, k1], [c0, c1]) = (self.kind.to_be_bytes(), self.control.to_be_bytes());
        *tag = [k0, k1, c0, c1];
        VnetHeader::shift(buffer, Self::LENGTH as u16);
        Some(longer)
    }
}
